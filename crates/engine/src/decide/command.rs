//! What an instance is told from outside: each command is checked against the state first.

use tidegate_model::{
    CommandKind, ElementIndex, ElementInstanceKey, IncidentKey, Rejection, Timestamp, Variables,
};

use crate::decide::control::fits_cancelling;
use crate::decide::{Step, Turn};
use crate::element::{INTERRUPTED, WhenInterrupted};
use crate::event::{Event, Resume};
use crate::state::{ElementInstance, Phase, Stage};
use crate::text::Failure;
use crate::timer::Period;

/// Tries that a retried job gets where nobody says otherwise.
const RETRIES_ON_RETRY: u32 = 1;

/// Characters of a worker's message that an incident shows; a worker may send a whole stack trace.
const INCIDENT_MESSAGE: usize = 2_000;

impl<'a> Turn<'a> {
    /// Decides a command.
    pub(crate) fn command(&mut self, kind: CommandKind) -> Result<(), Rejection> {
        if let Some(ended) = self.instance.ended() {
            return Err(Rejection::Ended(ended));
        }
        if self.instance.is_cancelling() && !fits_cancelling(&kind) {
            return Err(Rejection::Cancelling);
        }
        match kind {
            CommandKind::Start { element, variables } => self.start(element, variables),
            CommandKind::StartAt { begin, variables } => self.start_at(begin, variables),
            CommandKind::CompleteJob { job, variables } => {
                let element = self.open_job(job)?.element;
                self.event(Event::JobCompleted {
                    key: job,
                    element,
                    variables,
                });
                self.then(Step::Complete(job));
                Ok(())
            }
            CommandKind::FailJob {
                job,
                message,
                retries,
                retry_at,
            } => self.fail_job(job, message, retries, retry_at),
            CommandKind::ThrowError {
                job,
                code,
                message,
                variables,
            } => {
                self.open_job(job)?;
                self.throw(job, &code, message, variables);
                Ok(())
            }
            CommandKind::QuarantineJob { job, message } => {
                let element = self.open_job(job)?.element;
                self.incident(
                    job,
                    element,
                    Resume::Job,
                    Failure {
                        code: "quarantined",
                        message,
                    },
                );
                Ok(())
            }
            CommandKind::InterruptJob { job } => {
                let element = self.open_job(job)?.element;
                if self.definition.element(element).when_interrupted != WhenInterrupted::Rerun {
                    self.event(Event::ActivityInterrupted { key: job, element });
                }
                Ok(())
            }
            CommandKind::LoseJob { job } => {
                let element = self.open_job(job)?.element;
                self.interrupted(job, element);
                Ok(())
            }
            CommandKind::ResumeInterrupted => {
                for (&key, state) in &self.instance.elements {
                    if state.is_interrupted() {
                        self.interrupted(key, state.element);
                    }
                }
                Ok(())
            }
            CommandKind::AssignUserTask { task, assignee } => {
                let element = self.open_task(task)?.element;
                self.event(Event::UserTaskAssigned {
                    key: task,
                    element,
                    assignee,
                });
                Ok(())
            }
            CommandKind::CompleteUserTask { task, variables } => {
                let element = self.open_task(task)?.element;
                self.event(Event::UserTaskCompleted {
                    key: task,
                    element,
                    variables,
                });
                self.then(Step::Complete(task));
                Ok(())
            }
            CommandKind::TriggerTimer {
                owner,
                element,
                due_at,
            } => self.timer(owner, element, due_at),
            CommandKind::CorrelateMessage {
                owner,
                element,
                message,
                variables,
            } => self.message(owner, element, message, variables),
            CommandKind::CatchSignal {
                owner,
                element,
                variables,
            } => self.signal(owner, element, variables),
            CommandKind::ChildCompleted {
                owner,
                child,
                variables,
            } => self.child_completed(owner, child, variables),
            CommandKind::ChildFaulted {
                owner,
                child,
                code,
                message,
                variables,
            } => self.child_faulted(owner, child, (&code, message, variables)),
            CommandKind::ChildEscalated {
                owner,
                child,
                code,
                variables,
            } => self.child_escalated(owner, child, &code, variables),
            CommandKind::ChildCancelled { owner, child } => {
                let message =
                    "an operator cancelled the called instance. Retry to call it again, or cancel this one.";
                self.child_lost(owner, child, ("child-cancelled", message.to_owned()))
            }
            CommandKind::ChildNotStarted {
                owner,
                child,
                message,
            } => self.child_lost(owner, child, ("child-not-started", message)),
            CommandKind::SetVariables { scope, variables } => {
                let alive =
                    self.instance.phase == Phase::Running && self.instance.variables_of(scope).is_some();
                alive.then_some(()).ok_or(Rejection::NoSuchScope(scope))?;
                self.event(Event::VariablesSet { scope, variables });
                Ok(())
            }
            CommandKind::RetryIncident { incident, retries } => self.retry(incident, retries),
            CommandKind::ResolveIncident {
                incident,
                retries,
                scope,
                variables,
            } => {
                self.instance
                    .variables_of(scope)
                    .ok_or(Rejection::NoSuchScope(scope))?;
                if !variables.is_empty() && self.instance.incidents.contains_key(&incident) {
                    self.event(Event::VariablesSet { scope, variables });
                }
                self.retry(incident, retries)
            }
            CommandKind::Modify(modification) => self.modify(*modification),
            CommandKind::Cancel => {
                self.end_everything();
                self.event(Event::InstanceCancelled);
                Ok(())
            }
            CommandKind::Interrupt(record) => {
                self.event(Event::WorkflowInterrupted { record });
                Ok(())
            }
            CommandKind::RecoverCrashed { generation, attempt } => {
                self.event(Event::CrashRecovered { generation, attempt });
                Ok(())
            }
            CommandKind::Hold(hold) => {
                self.hold(hold);
                Ok(())
            }
            CommandKind::Release { origins } => {
                self.release(&origins);
                Ok(())
            }
            CommandKind::RequestCancel(cancellation) => {
                self.request_cancel(cancellation);
                Ok(())
            }
            CommandKind::ContinueCancel { most, running } => {
                self.continue_cancel(most, &running);
                Ok(())
            }
            CommandKind::AbandonActivity { job } => self.abandon(job),
            CommandKind::RefuseStimulus { message } => {
                self.refuse_stimulus(message);
                Ok(())
            }
        }
    }

    fn start(&mut self, element: Option<ElementIndex>, variables: Variables) -> Result<(), Rejection> {
        if self.instance.phase != Phase::New {
            return Err(Rejection::AlreadyStarted);
        }
        let definition = self.definition;
        let named = element.map(|named| self.named_start(named)).transpose()?;
        let starts = named.map_or_else(|| definition.starts.clone(), |event| vec![event]);
        if starts.is_empty() {
            return Err(Rejection::NoStart);
        }
        let first = match starts.as_slice() {
            [only] => Some(*only),
            _ => None,
        };
        self.event(Event::InstanceStarted {
            element: first,
            variables,
        });
        if !definition.listeners.is_empty() {
            self.then(Step::Listen(ElementInstanceKey::ROOT));
        }
        for event in starts {
            let key = self.spawn(event, ElementInstanceKey::ROOT);
            self.begin(key, event, element);
        }
        Ok(())
    }

    /// The event of a start that was asked for by its index.
    fn named_start(&self, named: ElementIndex) -> Result<ElementIndex, Rejection> {
        let definition = self.definition;
        let info = definition.elements.get(named.index()).ok_or(Rejection::NoStart)?;
        let can_start = info.behaviour.starter().is_some() || info.instantiated_by.is_some();
        if info.parent.is_some() || !can_start {
            return Err(Rejection::NoStart);
        }
        Ok(definition.event_of(named))
    }

    /// Where an instance begins: what created it has come, so that the event goes on, unless it needs others too.
    fn begin(&mut self, key: ElementInstanceKey, event: ElementIndex, source: Option<ElementIndex>) {
        let definition = self.definition;
        let info = definition.element(event);
        match source {
            Some(source) if source != event && info.behaviour.needs_all_parts() => self.then(Step::Arm {
                owner: key,
                event,
                except: Some(source),
            }),
            _ if info.instantiated_by.is_some() || info.behaviour.instantiates() => {
                self.then(Step::Complete(key));
            }
            _ => self.then(Step::Activate(key)),
        }
        let Some(gateway) = info
            .instantiated_by
            .filter(|gateway| definition.element(*gateway).behaviour.needs_all_parts())
        else {
            return;
        };
        for flow in &definition.element(gateway).outgoing {
            let other = definition.flow(*flow).target;
            if other != event {
                let key = self.spawn(other, ElementInstanceKey::ROOT);
                self.then(Step::Activate(key));
            }
        }
    }

    fn fail_job(
        &mut self,
        job: ElementInstanceKey,
        message: String,
        retries: Option<u32>,
        retry_at: Option<Timestamp>,
    ) -> Result<(), Rejection> {
        let state = self.open_job(job)?;
        let left = match &state.stage {
            Stage::Job { retries, .. } => retries.saturating_sub(1),
            Stage::Entered
            | Stage::UserTask { .. }
            | Stage::Waiting
            | Stage::Running
            | Stage::Call(_)
            | Stage::Leaving { .. }
            | Stage::Joined { .. } => 0,
        };
        let (element, retries) = (state.element, retries.unwrap_or(left));
        // Who says that it failed may say when to try again; the model says it otherwise.
        let rest = match retry_at {
            None if retries > 0 => self.rest_of(job, state, retries),
            _ => Ok(None),
        };
        let (rest, unclear) = match rest {
            Ok(rest) => (rest, None),
            Err(failure) => (None, Some(failure)),
        };
        let retry_at = retry_at.or(rest.map(|rest| rest.after(self.now)));
        self.event(Event::JobFailed {
            key: job,
            element,
            retries,
            retry_at,
            message: message.clone(),
        });
        if retries == 0 {
            // The whole text stands in the `JobFailed` beside it.
            let message = message.chars().take(INCIDENT_MESSAGE).collect();
            let failure = Failure {
                code: "job-no-retries",
                message,
            };
            self.incident(job, element, Resume::Job, failure);
        } else if let Some(failure) = unclear {
            self.incident(job, element, Resume::Job, *failure);
        }
        Ok(())
    }

    /// How long the model lets a failed job rest.
    fn rest_of(
        &self,
        job: ElementInstanceKey,
        state: &ElementInstance,
        left: u32,
    ) -> Result<Option<Period>, Box<Failure>> {
        let scope = self.visible(job, Some(&state.variables));
        let spec = self.definition.element(state.element).behaviour.job();
        spec.map_or(Ok(None), |spec| spec.rest(left, &scope))
    }

    /// What the model says about the work of a job that was interrupted.
    fn interrupted(&mut self, job: ElementInstanceKey, element: ElementIndex) {
        let info = self.definition.element(element);
        match info.when_interrupted {
            WhenInterrupted::Rerun => {}
            WhenInterrupted::Ask => {
                let message = format!(
                    "the work of `{}` was under way when it was interrupted, and nobody knows how far it came. Find \
                     out, then retry the incident to do it again, or cancel the instance.",
                    info.id
                );
                let code = INTERRUPTED;
                self.incident(job, element, Resume::Job, Failure { code, message });
            }
            // One of several may end what the others are in: each is looked at again in its turn.
            WhenInterrupted::Fail => self.then(Step::FailInterrupted(job)),
        }
    }

    pub(crate) fn fail_interrupted(&mut self, job: ElementInstanceKey) {
        let message = "the work was under way when it was interrupted, and the model has it fail then";
        if self.open_job(job).is_ok() {
            self.throw(job, INTERRUPTED, message.to_owned(), Variables::new());
        }
    }

    fn retry(&mut self, incident: IncidentKey, retries: Option<u32>) -> Result<(), Rejection> {
        let state = self
            .instance
            .incidents
            .get(&incident)
            .ok_or(Rejection::NoSuchIncident(incident))?;
        self.event(Event::IncidentResolved { incident });
        match (state.resume, state.element_instance) {
            // A sub-process into which something was put from outside has its content already.
            (Resume::Activation, Some(key)) if self.has_content(key) => self.then(Step::EnterScope(key)),
            (Resume::Activation, Some(key)) => self.then(Step::Activate(key)),
            (Resume::Completion, Some(key)) => self.then(Step::Complete(key)),
            (Resume::Job, Some(key)) => {
                let retries = retries.unwrap_or(RETRIES_ON_RETRY).max(1);
                self.event(Event::JobRetried {
                    key,
                    element: state.element,
                    retries,
                });
            }
            (Resume::Listeners, _) => self.listen_again(state.element),
            (Resume::Nothing, _) => {}
            (Resume::Next, Some(key)) => self.then(Step::Next(key)),
            (Resume::Call, Some(key)) => self.then(Step::Call(key)),
            (Resume::Tokens, _)
            | (Resume::Activation | Resume::Completion | Resume::Job | Resume::Next | Resume::Call, None) => {
                self.enter_again();
            }
        }
        Ok(())
    }

    /// Arms again what an incident kept from being armed: an event sub-process, the start of one, or another event.
    fn listen_again(&mut self, element: ElementIndex) {
        let definition = self.definition;
        let info = definition.element(element);
        let listener = if info.behaviour.is_listener() {
            Some(element)
        } else {
            definition.listener_of(element)
        };
        let place = match listener {
            Some(listener) => definition.element(listener).parent,
            None => Some(info.host.unwrap_or(element)),
        };
        let Some(place) = place else {
            return self.then(Step::Listen(ElementInstanceKey::ROOT));
        };
        for (&key, state) in &self.instance.elements {
            if state.element == place {
                self.then(match listener {
                    Some(_) => Step::Listen(key),
                    None => Step::Arm {
                        owner: key,
                        event: element,
                        except: None,
                    },
                });
            }
        }
    }

    fn has_content(&self, key: ElementInstanceKey) -> bool {
        let state = self.instance.elements.get(&key);
        state.is_some_and(|state| state.stage == Stage::Running && state.turns().is_none())
    }

    /// Lets every token that stands on a flow try to enter again.
    pub(crate) fn enter_again(&mut self) {
        let instance = self.instance;
        let inner = instance
            .elements
            .iter()
            .filter_map(|(key, state)| Some((*key, state.scope.as_deref()?)));
        let mut room = self.definition.limits.steps;
        for (scope, state) in std::iter::once((ElementInstanceKey::ROOT, &instance.root)).chain(inner) {
            for &(flow, count) in state.tokens() {
                // More than one advance can use would only be stopped again.
                let count = (count as usize).min(room + 1);
                room -= count.min(room);
                for _ in 0..count {
                    self.then(Step::Enter { scope, flow });
                }
            }
        }
    }

    fn open_job(&self, job: ElementInstanceKey) -> Result<&'a ElementInstance, Rejection> {
        let state = self.instance.elements.get(&job);
        state
            .filter(|state| state.has_open_job())
            .ok_or(Rejection::NoSuchJob(job))
    }

    fn open_task(&self, task: ElementInstanceKey) -> Result<&'a ElementInstance, Rejection> {
        let state = self.instance.elements.get(&task);
        let open = |state: &&ElementInstance| matches!(state.stage, Stage::UserTask { .. });
        state.filter(open).ok_or(Rejection::NoSuchUserTask(task))
    }
}
