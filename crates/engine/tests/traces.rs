//! Traces: each file of `traces/` says a process, gives commands (`> …`) and lists what follows from each.
//!
//! `TIDEGATE_BLESS=1` writes what happens into the files; read the difference before keeping it.

mod common;

use std::fmt::Write as _;
use std::path::Path;

use common::{Host, load};
use tidegate_engine::{Event, Instance, Starter, history};
use tidegate_model::effect::SubscriptionKind;
use tidegate_model::{
    Cancellation, CommandKind, Effect, ElementInstanceKey, HeldTimers, Hold, HoldScope, InstanceKey,
    Interruption, InterruptionReason, MessageKey, Rejection, Variables,
};

#[test]
fn traces_are_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let bless = std::env::var_os("TIDEGATE_BLESS").is_some_and(|value| value == "1");
    let mut wrong = Vec::new();
    let mut count = 0;
    let files = std::fs::read_dir(folder.join("traces")).unwrap();
    for path in files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "trace"))
    {
        count += 1;
        let written = std::fs::read_to_string(&path).unwrap();
        let got = play(&folder.join("fixtures"), &written);
        if bless {
            std::fs::write(&path, got).unwrap();
        } else if got != written {
            wrong.push(format!("--- {}\n{}", path.display(), difference(&written, &got)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 10, "only {count} traces were found");
}

fn difference(written: &str, got: &str) -> String {
    let first = written.lines().zip(got.lines()).position(|(a, b)| a != b);
    let line = first.unwrap_or(written.lines().count().min(got.lines().count()));
    let show = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_owned();
    format!(
        "line {}:\n  written: {}\n  got:     {}",
        line + 1,
        show(written),
        show(got)
    )
}

fn play(fixtures: &Path, written: &str) -> String {
    let mut out = String::new();
    let mut host: Option<Host> = None;
    for line in written.lines() {
        if let Some(name) = line.strip_prefix("process ") {
            let bytes = std::fs::read(fixtures.join(format!("{name}.bpmn"))).unwrap();
            let compiled = load(name, &bytes, &["groovy"]);
            if !out.is_empty() {
                out.push('\n');
            }
            writeln!(out, "{line}").unwrap();
            for found in &compiled.diagnostics {
                writeln!(
                    out,
                    "diagnostic {} {}",
                    found.code,
                    found.element_id.as_deref().unwrap_or_default()
                )
                .unwrap();
            }
            host = compiled.definitions.first().map(Host::new);
        } else if let (Some(command), Some(host)) = (line.strip_prefix("> "), host.as_mut()) {
            writeln!(out, "\n> {command}").unwrap();
            match command.split_once(' ').unwrap_or((command, "")) {
                ("clock", ms) => host.now = host.now.plus_ms(ms.parse().unwrap()),
                ("state", _) => show_state(host, &mut out),
                ("starters", _) => show_starters(host, &mut out),
                _ => {
                    let kind = parse(host, command);
                    let outcome = host.command(kind);
                    show(host, outcome, &mut out);
                }
            }
        } else if line.starts_with("# ") || line.starts_with("> ") {
            writeln!(out, "\n{line}").unwrap();
        }
    }
    host.iter().for_each(Host::check_journal);
    out
}

fn parse(host: &Host, command: &str) -> CommandKind {
    let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
    let (id, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let variables = |text: &str| {
        if text.is_empty() {
            Variables::new()
        } else {
            Variables::parse(text).unwrap()
        }
    };
    // The work itself, where it is one turn of a repeated activity.
    let job = || {
        host.jobs()
            .into_iter()
            .find(|job| &*job.element_id == id)
            .map(|job| job.key)
    };
    let task = || {
        host.open().find_map(|effect| match effect {
            Effect::OpenUserTask(task) if &*task.element_id == id => Some(task.key),
            _ => None,
        })
    };
    let key = || {
        job()
            .or_else(task)
            .or_else(|| host.find(id))
            .unwrap_or(ElementInstanceKey(999))
    };
    let element = |id: &str| host.definition.element_by_id(id).unwrap();
    match verb {
        "start" => CommandKind::Start {
            element: None,
            variables: variables(command[verb.len()..].trim()),
        },
        "start-at" => CommandKind::Start {
            element: Some(element(id)),
            variables: variables(rest),
        },
        "complete" => CommandKind::CompleteJob {
            job: key(),
            variables: variables(rest),
        },
        "fail" => {
            let retries = rest.parse().ok();
            let retry_at = retries.map(|_: u32| host.now.plus_ms(5_000));
            CommandKind::FailJob {
                job: key(),
                message: "it broke".to_owned(),
                retries,
                retry_at,
            }
        }
        "throw" => {
            let (code, values) = rest.split_once(' ').unwrap_or((rest, ""));
            let message = "as asked".to_owned();
            CommandKind::ThrowError {
                job: key(),
                code: code.to_owned(),
                message,
                variables: variables(values),
            }
        }
        "quarantine" => CommandKind::QuarantineJob {
            job: key(),
            message: "it panicked".to_owned(),
        },
        "assign" => CommandKind::AssignUserTask {
            task: key(),
            assignee: Some(rest.to_owned()).filter(|name| !name.is_empty()),
        },
        "complete-task" => CommandKind::CompleteUserTask {
            task: key(),
            variables: variables(rest),
        },
        "fire" => {
            let timer = host.open().find_map(|effect| match effect {
                Effect::ArmTimer(timer) if timer.element == element(id) => Some(timer.clone()),
                _ => None,
            });
            match timer {
                Some(timer) => CommandKind::TriggerTimer {
                    owner: timer.owner,
                    element: timer.element,
                    due_at: timer.due_at,
                },
                None => CommandKind::TriggerTimer {
                    owner: ElementInstanceKey(999),
                    element: element(id),
                    due_at: host.now,
                },
            }
        }
        "message" => {
            let found = host.open().find_map(|effect| match effect {
                Effect::Subscribe(found) if found.element == element(id) => Some(found.owner),
                _ => None,
            });
            CommandKind::CorrelateMessage {
                owner: found.unwrap_or(ElementInstanceKey(999)),
                element: element(id),
                message: MessageKey(77),
                variables: variables(rest),
            }
        }
        "signal" => {
            let found = host.open().find_map(|effect| match effect {
                Effect::Subscribe(found) if found.element == element(id) => Some(found.owner),
                _ => None,
            });
            CommandKind::CatchSignal {
                owner: found.unwrap_or(ElementInstanceKey(999)),
                element: element(id),
                variables: variables(rest),
            }
        }
        "set" if id.starts_with('{') => CommandKind::SetVariables {
            scope: ElementInstanceKey::ROOT,
            variables: variables(&command[4..]),
        },
        "set" => CommandKind::SetVariables {
            scope: key(),
            variables: variables(rest),
        },
        "retry" => {
            let open = host.instance.incidents().next().map(|(key, _)| key);
            let incident = open.unwrap_or(tidegate_model::IncidentKey(999));
            CommandKind::RetryIncident {
                incident,
                retries: id.parse().ok(),
            }
        }
        "child-completed" | "child-faulted" | "child-cancelled" | "child-missing" => {
            let called = host.open().find_map(|effect| match effect {
                Effect::StartChild(child) => Some((child.owner, child.instance)),
                _ => None,
            });
            let (owner, child) = called.unwrap_or((ElementInstanceKey(999), InstanceKey(999)));
            child_command(verb, owner, child, command[verb.len()..].trim())
        }
        "cancel" => CommandKind::Cancel,
        "hold" => CommandKind::Hold(Box::new(Hold {
            origin: host.instance.key(),
            since: host.now,
            actor: "op".to_owned(),
            reason: None,
            scope: match command.contains("self") {
                true => HoldScope::Alone,
                false => HoldScope::Tree,
            },
            timers: match command.contains("still") {
                true => HeldTimers::StandStill,
                false => HeldTimers::KeepRunning,
            },
        })),
        "release" => CommandKind::Release { origins: Vec::new() },
        "ask-to-cancel" => CommandKind::RequestCancel(Box::new(Cancellation {
            since: host.now,
            actor: "op".to_owned(),
            reason: None,
            is_unheard: false,
            patience_ms: command.contains("at-once").then_some(0),
            caller: None,
        })),
        "cancel-on" => CommandKind::ContinueCancel {
            most: command["cancel-on".len()..].trim().parse().unwrap(),
            running: Vec::new(),
        },
        "recover" => CommandKind::RecoverCrashed {
            generation: "g2".to_owned(),
            attempt: 1,
        },
        "interrupt" => {
            let last = host.instance.last_activity(&host.definition);
            CommandKind::Interrupt(Box::new(Interruption {
                interrupted_at: host.now,
                reason: InterruptionReason::DeadlineBreach,
                generation_id: "g1".to_owned(),
                last_activity_id: last.map(|(key, _)| key),
                last_activity_node_id: last.map(|(_, id)| id.to_owned()),
                ingress_source_name: None,
                cycle_ms: 12,
                reason_text: None,
            }))
        }
        other => panic!("unknown command {other}"),
    }
}

fn child_command(verb: &str, owner: ElementInstanceKey, child: InstanceKey, rest: &str) -> CommandKind {
    match verb {
        "child-completed" => CommandKind::ChildCompleted {
            owner,
            child,
            variables: Variables::parse(rest).unwrap(),
        },
        "child-faulted" => CommandKind::ChildFaulted {
            owner,
            child,
            code: rest.to_owned(),
            message: "it broke".to_owned(),
            variables: Variables::new(),
        },
        "child-cancelled" => CommandKind::ChildCancelled { owner, child },
        _ => CommandKind::ChildNotStarted {
            owner,
            child,
            message: "there is no such process".to_owned(),
        },
    }
}

fn show(host: &Host, outcome: Result<(Vec<Event>, Vec<Effect>), Rejection>, out: &mut String) {
    let (events, effects) = match outcome {
        Ok(outcome) => outcome,
        Err(rejection) => return writeln!(out, "refused {}", rejection.code()).unwrap(),
    };
    // A loop without an end would fill the page.
    const SHOWN: usize = 60;
    let items = history(&host.definition, &events, 1);
    for item in items.iter().take(SHOWN) {
        let payload = without_keys(&item.payload);
        let flow = item.payload["flowId"]
            .as_str()
            .filter(|_| item.element_id.is_none());
        let place = item.element_id.as_deref().or(flow).unwrap_or_default();
        let space = if place.is_empty() { "" } else { " " };
        writeln!(out, "{}{space}{place}{payload}", item.event).unwrap();
    }
    if items.len() > SHOWN {
        writeln!(out, "and {} more", items.len() - SHOWN).unwrap();
    }
    for effect in effects {
        writeln!(out, "  {}", effect_line(host, &effect)).unwrap();
    }
}

/// The payload without what is different from run to run or said already.
fn without_keys(payload: &serde_json::Value) -> String {
    let mut payload = payload.clone();
    let Some(map) = payload.as_object_mut() else {
        return String::new();
    };
    map.retain(|name, value| {
        !name.ends_with("Key") && name != "flowId" && name != "lastActivityId" && !value.is_null()
    });
    if map.is_empty() {
        String::new()
    } else {
        format!(" {payload}")
    }
}

fn effect_line(host: &Host, effect: &Effect) -> String {
    let id = |element: tidegate_model::ElementIndex| host.definition.element(element).id.to_string();
    match effect {
        Effect::RunJob(job) => {
            let headers: Vec<String> = job
                .headers
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let later = job
                .not_before
                .map(|at| format!(" after {at}"))
                .unwrap_or_default();
            let (job_type, retries) = (&job.job_type, job.retries);
            let variables = job.variables.to_json();
            format!(
                "run-job {} {job_type} retries={retries} [{}]{later} {variables}",
                job.element_id,
                headers.join(",")
            )
        }
        Effect::JobGone(_) => "job-gone".to_owned(),
        Effect::OpenUserTask(task) => {
            let name = task.name.as_deref().unwrap_or_default();
            format!(
                "open-user-task {} `{name}` {:?} {:?}",
                task.element_id, task.assignee, task.candidate_groups
            )
        }
        Effect::CloseUserTask(_) => "close-user-task".to_owned(),
        Effect::ArmTimer(timer) => format!("arm-timer {} {}", id(timer.element), timer.due_at),
        Effect::DisarmTimer { element, .. } => format!("disarm-timer {}", id(*element)),
        Effect::Subscribe(signal) if signal.kind == SubscriptionKind::Signal => format!(
            "subscribe-signal {} `{}` once={}",
            id(signal.element),
            signal.message_name,
            signal.once
        ),
        Effect::Subscribe(message) => format!(
            "subscribe {} `{}` key=`{}` once={}",
            id(message.element),
            message.message_name,
            message.correlation_key,
            message.once
        ),
        Effect::Unsubscribe { element, .. } => format!("unsubscribe {}", id(*element)),
        Effect::RaiseIncident(incident) => {
            format!(
                "raise-incident {} {}",
                incident.code,
                incident.element_id.as_deref().unwrap_or_default()
            )
        }
        Effect::CloseIncident(_) => "close-incident".to_owned(),
        Effect::StartChild(child) => format!(
            "start-child {} {:?} {:?} {}",
            child.process_id,
            child.binding,
            child.business_key,
            child.variables.to_json()
        ),
        Effect::PublishMessage {
            name,
            correlation_key,
            variables,
            ..
        } => format!(
            "publish-message `{name}` key=`{correlation_key}` {}",
            variables.to_json()
        ),
        Effect::BroadcastSignal { name, variables } => {
            format!("broadcast-signal `{name}` {}", variables.to_json())
        }
        Effect::CancelChild { is_awaited: true, .. } => "cancel-child awaited".to_owned(),
        Effect::CancelChild { .. } => "cancel-child".to_owned(),
        Effect::HoldChild { .. } => "hold-child".to_owned(),
        Effect::ReleaseChild { .. } => "release-child".to_owned(),
        Effect::EscalateToParent { code, variables } => {
            format!("escalate-to-parent {code} {}", variables.to_json())
        }
        Effect::Ended(sub_status) => format!("ended {}", sub_status.word()),
    }
}

fn show_state(host: &Host, out: &mut String) {
    let instance: &Instance = &host.instance;
    for token in instance.tokens(&host.definition) {
        let own = token
            .element_instance
            .and_then(|key| instance.variables_of(key))
            .filter(|own| !own.is_empty());
        let own = own.map(|own| format!(" {}", own.to_json())).unwrap_or_default();
        writeln!(out, "token {} {}{own}", token.element_id, token.state.word()).unwrap();
    }
    for wait in instance.waiting_for(&host.definition) {
        writeln!(
            out,
            "waits {} {} {}",
            wait.element_id,
            wait.kind.word(),
            wait.kind.detail()
        )
        .unwrap();
    }
    let last = instance
        .last_activity(&host.definition)
        .map_or("none", |(_, id)| id);
    writeln!(out, "last activity {last}").unwrap();
    writeln!(out, "variables {}", instance.variables().to_json()).unwrap();
}

fn show_starters(host: &Host, out: &mut String) {
    for Starter { element, trigger } in host.definition.starters() {
        let id = &host.definition.element(element).id;
        let mut turns = Vec::new();
        let mut after = host.now;
        while let Some(next) = host
            .definition
            .next_start_timer(element, after, turns.len() as u32)
        {
            turns.push(next.to_string());
            after = next;
        }
        writeln!(out, "{id} {trigger:?} {}", turns.join(" ")).unwrap();
    }
}
