//! `decision`: the job of a business rule task that calls a decision. Evaluates the newest deployed decision of the
//! header `decisionId` with the variables of the job; the header `resultVariable` names where its value goes.

use std::sync::{Arc, OnceLock, Weak};

use tidegate_expression::{Limits, Scope, Value};
use tidegate_model::{Json, Timestamp, Variables};

use super::{Activity, ActivityContext, ActivityError, ActivityFuture, ActivityResult};
use crate::shared::Shared;

/// The job type.
pub(crate) const JOB_TYPE: &str = "decision";

/// Knows the shell once it is there: the handlers are put together before it.
#[derive(Default)]
pub(crate) struct Decision {
    pub(crate) shared: Arc<OnceLock<Weak<Shared>>>,
}

impl Activity for Decision {
    fn run(&self, context: ActivityContext) -> ActivityFuture {
        let shared = self.shared.get().and_then(Weak::upgrade);
        Box::pin(async move {
            let Some(shared) = shared else {
                return Err(ActivityError::Stopped);
            };
            // Bounded in steps, but perhaps long enough to be in the way of others.
            let evaluated = crate::tasks::blocking(move || evaluate(&shared, &context)).await;
            evaluated
                .unwrap_or_else(|error| Err(failed(format!("the decision could not be evaluated: {error}"))))
        })
    }
}

fn evaluate(shared: &Shared, context: &ActivityContext) -> ActivityResult {
    let Some(id) = context.header("decisionId") else {
        return Err(failed(
            "the task has no header `decisionId`; name the decision it calls".to_owned(),
        ));
    };
    let Some(decision) = shared.definitions.decision(&context.tenant, id) else {
        return Err(failed(format!(
            "there is no decision `{id}`; deploy it, then retry the incident"
        )));
    };
    let scope = Visible {
        variables: &context.variables,
        now: shared.now(),
    };
    let evaluated = decision
        .decisions
        .evaluate(id, &scope, &Limits::default())
        .map_err(|error| {
            failed(format!(
                "decision `{id}` (version {}): {error}",
                decision.row.version
            ))
        })?;
    let mut results = Variables::new();
    match (context.header("resultVariable"), &evaluated.value) {
        (Some(name), value) => results.set(name, Json::trusted(value.to_json())),
        (None, Value::Context(entries)) => {
            for (name, value) in entries.iter() {
                results.set(name.clone(), Json::trusted(value.to_json()));
            }
        }
        (None, value) => results.set(id, Json::trusted(value.to_json())),
    }
    Ok(results)
}

/// Trying again by itself would give the same: an operator is asked at once.
fn failed(message: String) -> ActivityError {
    ActivityError::Failed {
        message,
        retries: Some(0),
        backoff: None,
    }
}

struct Visible<'a> {
    variables: &'a Variables,
    now: Timestamp,
}

impl Scope for Visible<'_> {
    fn lookup(&self, name: &str) -> Option<Value> {
        Value::from_json(self.variables.get(name)?.text()).ok()
    }

    fn now_ms(&self) -> i64 {
        self.now.as_ms()
    }

    fn names(&self, visit: &mut dyn FnMut(&str)) {
        self.variables.iter().for_each(|(name, _)| visit(name));
    }
}
