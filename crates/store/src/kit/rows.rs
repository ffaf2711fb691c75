//! Rows to test with.

use std::sync::Arc;

use tidegate_model::{
    Cause, DefinitionKey, DeploymentKey, ElementIndex, ElementInstanceKey, IncidentKey, InstanceKey,
    MessageKey, StimulusKey, SubStatus, TaskDetails,
};

use super::at;
use crate::commit::Write;
use crate::row::*;

pub(super) const TENANT: &str = "<default>";

pub(super) fn instance(key: u64) -> InstanceRow {
    InstanceRow {
        key: InstanceKey(key),
        definition: DefinitionKey(7),
        process_id: Arc::from("order"),
        version: 3,
        tenant: Arc::from(TENANT),
        business_key: None,
        parent: None,
        parent_element: None,
        enclosing: Vec::new(),
        depth: 0,
        revision: 1,
        sub_status: SubStatus::Suspended,
        incident_count: 0,
        attempts: 0,
        started_at: at(1_000),
        ended_at: None,
    }
}

pub(super) fn create(key: u64) -> Write {
    Write::CreateInstance {
        row: Box::new(instance(key)),
        state: None,
    }
}

pub(super) fn next(key: u64, revision: u64) -> InstanceUpdate {
    InstanceUpdate {
        key: InstanceKey(key),
        revision,
        sub_status: SubStatus::Suspended,
        incident_count: 0,
        attempts: 0,
        ended_at: None,
        state: None,
    }
}

pub(super) fn update(key: u64, revision: u64) -> Write {
    Write::UpdateInstance(next(key, revision))
}

pub(super) fn entry(key: u64, revision: u64) -> JournalRow {
    JournalRow {
        instance: InstanceKey(key),
        revision,
        first_sequence: revision * 10,
        payload: format!("entry {revision} of {key}").into_bytes(),
    }
}

pub(super) fn journal(key: u64, revision: u64) -> Write {
    Write::Journal(entry(key, revision))
}

pub(super) fn timer(owner: u64, due_at: i64) -> TimerRow {
    TimerRow {
        due_at: at(due_at),
        owner,
        element: ElementIndex(2),
        instance: Some(InstanceKey(1)),
        fired: 0,
    }
}

pub(super) fn subscription(owner: u64, process_id: &str) -> SubscriptionRow {
    SubscriptionRow {
        awaited: Awaited::Message,
        owner: ElementInstanceKey(owner),
        element: ElementIndex(4),
        instance: InstanceKey(owner + 1_000),
        process_id: Arc::from(process_id),
        tenant: Arc::from(TENANT),
        message_name: Arc::from("paid"),
        correlation_key: "42".to_owned(),
        once: true,
        ends: false,
    }
}

pub(super) fn subscribe(row: SubscriptionRow, now: i64) -> Write {
    Write::Subscribe { row, now: at(now) }
}

/// A message that waits until 1,000.
pub(super) fn message(key: u64) -> MessageRow {
    MessageRow {
        from: Some(Cause::Client {
            actor: "ada".to_owned(),
        }),
        key: MessageKey(key),
        tenant: Arc::from(TENANT),
        name: "paid".to_owned(),
        correlation_key: "42".to_owned(),
        variables: format!("{{\"amount\": {key}}}"),
        expires_at: at(1_000),
    }
}

pub(super) fn publish(row: MessageRow, now: i64) -> Write {
    Write::Publish {
        row,
        has_taker: false,
        now: at(now),
    }
}

pub(super) fn job(key: u64) -> JobRow {
    JobRow {
        key: ElementInstanceKey(key),
        instance: InstanceKey(1),
        definition: DefinitionKey(7),
        process_id: Arc::from("order"),
        tenant: Arc::from(TENANT),
        element_id: Arc::from("charge"),
        job_type: Arc::from("payment"),
        headers: "{}".to_owned(),
        variables: "{\"a\":1}".to_owned(),
        retries: 3,
        state: JobState::Available,
        not_before: at(0),
        worker: None,
        lease_token: None,
        lease_until: None,
    }
}

pub(super) fn open_job(row: JobRow) -> Write {
    Write::OpenJob(Box::new(row))
}

/// A lease of 100.
pub(super) fn lease(limit: usize, token: &str, now: i64) -> Write {
    Write::LeaseJobs(Box::new(LeaseRequest {
        job_type: "payment".to_owned(),
        tenant: Arc::from(TENANT),
        worker: "worker-1".to_owned(),
        except: Vec::new(),
        limit,
        lease_token: token.to_owned(),
        now: at(now),
        lease_until: at(now + 100),
    }))
}

pub(super) fn stimulus(payload: &str, accepted_at: i64) -> StimulusRow {
    StimulusRow {
        key: StimulusKey(0),
        domain: "instance/1".to_owned(),
        source: "http.api".to_owned(),
        payload: payload.as_bytes().to_vec(),
        accepted_at: at(accepted_at),
        attempts: 0,
    }
}

pub(super) fn definition(key: u64, process_id: &str, version: u32) -> DefinitionRow {
    DefinitionRow {
        key: DefinitionKey(key),
        deployment: DeploymentKey(key + 1),
        resource: key + 2,
        resource_name: format!("{process_id}.bpmn"),
        checksum: "00ff".to_owned(),
        process_id: Arc::from(process_id),
        version,
        name: Some("A process".to_owned()),
        tenant: Arc::from(TENANT),
        deployed_at: at(5),
        is_deleted: false,
        kind: DefinitionKind::Process,
    }
}

pub(super) fn user_task(key: u64, instance: u64) -> UserTaskRow {
    UserTaskRow {
        key: ElementInstanceKey(key),
        instance: InstanceKey(instance),
        process_id: Arc::from("order"),
        tenant: Arc::from(TENANT),
        element_id: Arc::from("approve"),
        name: Some("Approve \"it\"".to_owned()),
        assignee: None,
        candidate_groups: vec!["sales".to_owned(), "a, b".to_owned()],
        details: TaskDetails {
            candidate_users: vec!["ada".to_owned()],
            form_key: Some("approve \"it\"".to_owned()),
            due_date: Some(at(99)),
            priority: Some(-7),
            ..TaskDetails::default()
        },
        created_at: at(9),
    }
}

pub(super) fn incident(key: u64, instance: u64) -> IncidentRow {
    IncidentRow {
        key: IncidentKey(key),
        instance: InstanceKey(instance),
        process_id: Arc::from("order"),
        tenant: Arc::from(TENANT),
        element_id: Some("charge".to_owned()),
        element_instance: Some(ElementInstanceKey(key + 1)),
        code: "job-no-retries".to_owned(),
        message: "It failed.".to_owned(),
        raised_at: at(11),
    }
}

pub(super) fn audit(action: &str) -> AuditRow {
    AuditRow {
        key: 0,
        time: at(13),
        action: action.to_owned(),
        actor: "eve".to_owned(),
        reason: Some("because".to_owned()),
        shell: "default".to_owned(),
        subject: None,
        before: None,
        after: Some("paused".to_owned()),
        outcome: "ok".to_owned(),
        scope: "runtime".to_owned(),
        request_id: Some("r-1".to_owned()),
    }
}
