//! The journal as people read it.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_model::{Cause, DefinitionKey, ElementIndex, ElementInstanceKey, Timestamp};

use crate::definition::{Definition, FlowIndex};
use crate::event::{Event, Resume};

/// One line of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryItem {
    /// Its place in the journal, from 1.
    pub sequence: u64,
    /// When it was decided.
    pub time: Timestamp,
    /// What happened, for example `ElementActivated`.
    pub event: &'static str,
    /// The element's BPMN id.
    pub element_id: Option<Arc<str>>,
    /// The element instance.
    pub element_instance_key: Option<ElementInstanceKey>,
    /// Who or what caused it.
    pub cause: Cause,
    /// The rest, as a JSON object with names in camelCase.
    pub payload: Value,
}

/// Reads events of one definition, of which the first has the place `first` in the journal.
pub fn history(definition: &Definition, events: &[Event], first: u64) -> Vec<HistoryItem> {
    history_across(definition, events, first, &|_| None)
}

/// Reads events among which the instance may change its definition. `definition` is the one that was in force
/// then; `later` gives those to which the instance changes among these events.
pub fn history_across<'a>(
    mut definition: &'a Definition,
    events: &[Event],
    first: u64,
    later: &dyn Fn(DefinitionKey) -> Option<&'a Definition>,
) -> Vec<HistoryItem> {
    let mut items = Vec::with_capacity(events.len());
    let (mut time, mut cause, mut sequence) = (Timestamp::default(), Cause::Engine, first);
    for event in events {
        if let Event::Caused {
            time: new_time,
            cause: new_cause,
        } = event
        {
            time = *new_time;
            cause.clone_from(new_cause);
            continue;
        }
        if let Event::Migrated { to, .. } = event {
            definition = later(*to).unwrap_or(definition);
        }
        let line = line(definition, event);
        let id = |element: ElementIndex| {
            definition
                .elements
                .get(element.index())
                .map(|info| Arc::clone(&info.id))
        };
        items.push(HistoryItem {
            sequence,
            time,
            event: line.name,
            element_id: line.element.and_then(id),
            element_instance_key: line.key.filter(|key| *key != ElementInstanceKey::ROOT),
            cause: cause.clone(),
            payload: line.payload,
        });
        sequence += 1;
    }
    items
}

struct Line {
    name: &'static str,
    element: Option<ElementIndex>,
    key: Option<ElementInstanceKey>,
    payload: Value,
}

fn of_element(name: &'static str, key: ElementInstanceKey, element: ElementIndex, payload: Value) -> Line {
    Line {
        name,
        element: Some(element),
        key: Some(key),
        payload,
    }
}

fn of_instance(name: &'static str, payload: Value) -> Line {
    Line {
        name,
        element: None,
        key: None,
        payload,
    }
}

fn line(definition: &Definition, event: &Event) -> Line {
    let flow_id = |flow: FlowIndex| definition.flows.get(flow.index()).map(|flow| &*flow.id);
    match event {
        Event::Caused { .. } => of_instance("Caused", json!({})),
        Event::InstanceStarted { element, variables } => Line {
            element: *element,
            ..of_instance("InstanceStarted", json!({ "variables": variables }))
        },
        Event::InstanceCompleted => of_instance("InstanceCompleted", json!({})),
        Event::InstanceCancelled => of_instance("InstanceCancelled", json!({})),
        Event::InstanceFaulted {
            element,
            code,
            message,
        } => Line {
            element: Some(*element),
            ..of_instance(
                "InstanceFaulted",
                json!({ "errorCode": code, "message": message }),
            )
        },
        Event::ElementActivated {
            key,
            element,
            parent,
            flow,
        } => {
            let parent = Some(parent).filter(|parent| **parent != ElementInstanceKey::ROOT);
            let flow = flow.and_then(flow_id);
            of_element(
                "ElementActivated",
                *key,
                *element,
                json!({ "scopeKey": parent, "flowId": flow }),
            )
        }
        Event::ElementCompleted { key, element } => of_element("ElementCompleted", *key, *element, json!({})),
        Event::ElementTerminated { key, element } => {
            of_element("ElementTerminated", *key, *element, json!({}))
        }
        Event::SequenceFlowTaken { scope, flow } => Line {
            key: Some(*scope),
            ..of_instance("SequenceFlowTaken", json!({ "flowId": flow_id(*flow) }))
        },
        Event::TokensRemoved { scope } => Line {
            key: Some(*scope),
            ..of_instance("TokensRemoved", json!({}))
        },
        Event::VariablesSet { scope, variables } => Line {
            key: Some(*scope),
            ..of_instance("VariablesSet", json!({ "variables": variables }))
        },
        Event::ResultsMerged { key, element } => of_element("ResultsMerged", *key, *element, json!({})),
        Event::JobCreated {
            key,
            element,
            retries,
            job_type,
        } => {
            let fixed = definition
                .elements
                .get(element.index())
                .and_then(|info| info.behaviour.job());
            let fixed = fixed.and_then(|job| job.job_type.literal()).map(|text| &**text);
            let payload = json!({ "jobType": job_type.as_deref().or(fixed), "retries": retries });
            of_element("JobCreated", *key, *element, payload)
        }
        Event::JobCompleted {
            key,
            element,
            variables,
        } => of_element("JobCompleted", *key, *element, json!({ "variables": variables })),
        Event::JobFailed {
            key,
            element,
            retries,
            retry_at,
            message,
        } => {
            let payload = json!({ "retries": retries, "retryAt": retry_at, "message": message });
            of_element("JobFailed", *key, *element, payload)
        }
        Event::JobRetried {
            key,
            element,
            retries,
        } => of_element("JobRetried", *key, *element, json!({ "retries": retries })),
        Event::ScriptEvaluated {
            key,
            element,
            variables,
        } => of_element(
            "ScriptEvaluated",
            *key,
            *element,
            json!({ "variables": variables }),
        ),
        Event::UserTaskCreated {
            key,
            element,
            assignee,
            candidate_groups,
            details,
        } => {
            let mut payload = json!({ "assignee": assignee, "candidateGroups": candidate_groups });
            if let Some(details) = details {
                payload["details"] = json!(details);
            }
            of_element("UserTaskCreated", *key, *element, payload)
        }
        Event::UserTaskAssigned {
            key,
            element,
            assignee,
        } => of_element(
            "UserTaskAssigned",
            *key,
            *element,
            json!({ "assignee": assignee }),
        ),
        Event::UserTaskCompleted {
            key,
            element,
            variables,
        } => of_element(
            "UserTaskCompleted",
            *key,
            *element,
            json!({ "variables": variables }),
        ),
        Event::TimerArmed {
            owner,
            element,
            due_at,
            repeat,
        } => {
            let left = repeat.and_then(|repeat| repeat.left);
            let payload = json!({ "dueAt": due_at, "repeats": repeat.is_some(), "repeatsLeft": left });
            of_element("TimerArmed", *owner, *element, payload)
        }
        Event::TimerFired {
            owner,
            element,
            into,
            due_at,
            missed,
            next,
        } => {
            let payload = json!({ "ownerKey": owner, "dueAt": due_at, "missed": missed, "nextDueAt": next });
            of_element("TimerFired", *into, *element, payload)
        }
        Event::MessageSubscribed {
            owner,
            element,
            name,
            correlation_key,
        } => {
            let fixed = crate::state::awaited_name(definition, *element);
            let name = name.as_deref().unwrap_or(&fixed);
            let payload = json!({ "messageName": name, "correlationKey": correlation_key });
            of_element("MessageSubscribed", *owner, *element, payload)
        }
        Event::MessageCorrelated {
            owner,
            element,
            into,
            message,
            variables,
        } => {
            let payload = json!({ "ownerKey": owner, "messageKey": message, "variables": variables });
            of_element("MessageCorrelated", *into, *element, payload)
        }
        Event::ErrorThrown {
            key,
            element,
            code,
            message,
        } => of_element(
            "ErrorThrown",
            *key,
            *element,
            json!({ "errorCode": code, "message": message }),
        ),
        Event::ErrorCaught {
            key,
            element,
            code,
            variables,
        } => of_element(
            "ErrorCaught",
            *key,
            *element,
            json!({ "errorCode": code, "variables": variables }),
        ),
        Event::IncidentRaised {
            incident,
            element_instance,
            element,
            resume,
            code,
            message,
        } => {
            let payload = json!({
                "incidentKey": incident, "code": code, "message": message, "stopped": stopped(*resume),
            });
            match resume {
                Resume::Nothing => of_instance("IncidentRaised", payload),
                _ => of_element("IncidentRaised", *element_instance, *element, payload),
            }
        }
        Event::IncidentResolved { incident } => {
            of_instance("IncidentResolved", json!({ "incidentKey": incident }))
        }
        Event::WorkflowInterrupted { record } => {
            let payload = serde_json::to_value(record).unwrap_or_default();
            Line {
                key: record.last_activity_id,
                ..of_instance("WorkflowInterrupted", payload)
            }
        }
        Event::CrashRecovered { generation, attempt } => {
            let payload = json!({ "generationId": generation, "attempt": attempt });
            of_instance("CrashRecovered", payload)
        }
        Event::HistoryTrimmed { first_kept } => {
            of_instance("HistoryTrimmed", json!({ "firstKeptSequence": first_kept }))
        }
        Event::ActivityInterrupted { key, element } => {
            of_element("ActivityInterrupted", *key, *element, json!({}))
        }
        Event::MessagePublished {
            key,
            element,
            name,
            correlation_key,
            variables,
            ttl_ms,
            message_id,
        } => {
            let mut payload = json!({
                "messageName": name, "correlationKey": correlation_key, "variables": variables, "ttlMs": ttl_ms,
            });
            if let Some(id) = message_id {
                payload["messageId"] = json!(id);
            }
            of_element("MessagePublished", *key, *element, payload)
        }
        Event::SignalThrown {
            key,
            element,
            name,
            variables,
        } => {
            let payload = json!({ "signalName": name, "variables": variables });
            of_element("SignalThrown", *key, *element, payload)
        }
        Event::SignalSubscribed { owner, element, name } => {
            let fixed = crate::state::awaited_name(definition, *element);
            let payload = json!({ "signalName": name.as_deref().unwrap_or(&fixed) });
            of_element("SignalSubscribed", *owner, *element, payload)
        }
        Event::SignalCaught {
            owner,
            element,
            into,
            variables,
        } => {
            let payload = json!({ "ownerKey": owner, "variables": variables });
            of_element("SignalCaught", *into, *element, payload)
        }
        Event::EscalationThrown { key, element, code } => of_element(
            "EscalationThrown",
            *key,
            *element,
            json!({ "escalationCode": code }),
        ),
        Event::EscalationCaught {
            key,
            element,
            code,
            variables,
        } => {
            let payload = json!({ "escalationCode": code, "variables": variables });
            of_element("EscalationCaught", *key, *element, payload)
        }
        Event::EscalationUncaught {
            key,
            element,
            code,
            variables,
        } => {
            let payload = json!({ "escalationCode": code, "variables": variables });
            of_element("EscalationUncaught", *key, *element, payload)
        }
        Event::ConditionAwaited { owner, element } => {
            of_element("ConditionAwaited", *owner, *element, json!({}))
        }
        Event::ConditionMet { owner, element, into } => {
            of_element("ConditionMet", *into, *element, json!({ "ownerKey": owner }))
        }
        Event::ConditionLapsed { owner, element } => {
            of_element("ConditionLapsed", *owner, *element, json!({}))
        }
        Event::WaitsClosed { owner, element } => of_element("WaitsClosed", *owner, *element, json!({})),
        Event::GatewayOpened { key, element } => of_element("GatewayOpened", *key, *element, json!({})),
        Event::GatewayReset { key, element } => of_element("GatewayReset", *key, *element, json!({})),
        Event::Migrated { from, to, .. } => of_instance(
            "Migrated",
            json!({ "fromDefinitionKey": from, "toDefinitionKey": to }),
        ),
        Event::TokensTaken { scope, flow, count } => Line {
            key: Some(*scope),
            ..of_instance("TokensTaken", json!({ "flowId": flow_id(*flow), "count": count }))
        },
        Event::ScopeEntered { key, element } => of_element("ScopeEntered", *key, *element, json!({})),
        Event::InstanceHeld { hold } => {
            let payload = hold.as_ref().and_then(|hold| serde_json::to_value(hold).ok());
            of_instance("InstanceHeld", payload.unwrap_or_else(|| json!({})))
        }
        Event::InstanceReleased { origins, shift_ms } => {
            let payload = json!({ "instanceKeys": origins, "timersPutOffByMs": shift_ms });
            of_instance("InstanceReleased", payload)
        }
        Event::CancelRequested { cancellation } => {
            let payload = serde_json::to_value(cancellation).unwrap_or_default();
            of_instance("CancelRequested", payload)
        }
        Event::ChildCancelRequested { key, element, child } => of_element(
            "ChildCancelRequested",
            *key,
            *element,
            json!({ "childKey": child }),
        ),
        Event::ActivityAbandoned { key, element } => {
            of_element("ActivityAbandoned", *key, *element, json!({}))
        }
        Event::LoopStarted {
            key,
            element,
            total,
            items,
        } => {
            let payload = json!({ "turns": total, "items": items });
            of_element("LoopStarted", *key, *element, payload)
        }
        Event::LoopTurnActivated { key, element, parent } => {
            of_element("LoopTurnActivated", *key, *element, json!({ "scopeKey": parent }))
        }
        Event::LoopOutputCollected { key, element, value } => {
            of_element("LoopOutputCollected", *key, *element, json!({ "value": value }))
        }
        Event::LoopEnded { key, element } => of_element("LoopEnded", *key, *element, json!({})),
        Event::ChildCalled {
            key,
            element,
            child,
            process_id,
            binding,
            variables,
            business_key,
        } => {
            let payload = json!({
                "childKey": child, "processId": process_id, "binding": binding, "variables": variables,
                "businessKey": business_key,
            });
            of_element("ChildCalled", *key, *element, payload)
        }
        Event::ChildEnded {
            key,
            element,
            child,
            outcome,
            variables,
        } => {
            let payload = json!({ "childKey": child, "outcome": outcome.word(), "variables": variables });
            of_element("ChildEnded", *key, *element, payload)
        }
        Event::CompensationActivated {
            key,
            element,
            parent,
            scope,
            ..
        } => {
            let scope = Some(scope).filter(|scope| **scope != ElementInstanceKey::ROOT);
            let payload = json!({ "throwKey": parent, "compensatedScopeKey": scope });
            of_element("CompensationActivated", *key, *element, payload)
        }
        Event::CompensationEnded { scope, .. } => Line {
            key: Some(*scope),
            ..of_instance("CompensationEnded", json!({}))
        },
        Event::TransactionCancelled { key, element, into } => of_element(
            "TransactionCancelled",
            *key,
            *element,
            json!({ "boundaryKey": into }),
        ),
        Event::CompensationKept { key, element } => of_element("CompensationKept", *key, *element, json!({})),
        Event::CompensationDetached { key, element } => {
            of_element("CompensationDetached", *key, *element, json!({}))
        }
        Event::AdHocClosed { key, element } => of_element("AdHocClosed", *key, *element, json!({})),
        Event::AdHocProgressed { key, element, begun } => {
            of_element("AdHocProgressed", *key, *element, json!({ "begun": begun }))
        }
    }
}

fn stopped(resume: Resume) -> &'static str {
    match resume {
        Resume::Activation => "activation",
        Resume::Completion => "completion",
        Resume::Job => "job",
        Resume::Tokens => "tokens",
        Resume::Listeners => "listeners",
        Resume::Next => "next",
        Resume::Call => "call",
        Resume::Nothing => "nothing",
    }
}
