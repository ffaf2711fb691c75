//! The commands, each with the request it makes.

mod admin;
mod audit;
mod definitions;
mod deploy;
mod instance_control;
mod instances;
mod many;
mod repair;
mod shells;
mod work;

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::http::{Answer, Client, Failure};
use super::print::list;
use crate::args::{ClientCommand, Output};
use crate::terminal;

const RUNTIME: [&str; 2] = ["admin", "workflow-runtime"];

/// Runs one command.
pub async fn run(command: ClientCommand) -> Result<(), Failure> {
    match command {
        ClientCommand::Deploy(call) => deploy::deploy(call).await,
        ClientCommand::Start(call) => instances::start(call).await,
        ClientCommand::Instances(call) => instances::instances(*call).await,
        ClientCommand::Forget(call) => many::forget(call).await,
        ClientCommand::Batch(call) => many::batch(*call).await,
        ClientCommand::Settings(call) => many::settings(*call).await,
        ClientCommand::Instance(call) => instances::instance(call).await,
        ClientCommand::History(call) => instances::history(call).await,
        ClientCommand::Cancel(call) => instance_control::cancel(call).await,
        ClientCommand::Suspend(call) => instance_control::suspend(call).await,
        ClientCommand::Release(call) => instance_control::release(call).await,
        ClientCommand::Why(call) => instance_control::why(call).await,
        ClientCommand::Message(call) => work::message(call).await,
        ClientCommand::Definitions(call) => {
            let answer = Client::new(&call.connection)?
                .get(&["process-definitions"], &[])
                .await?;
            let columns = [
                ("definition", "definitionKey"),
                ("process", "processId"),
                ("version", "version"),
                ("name", "name"),
                ("resource", "resource"),
                ("deployed", "deployedAt"),
            ];
            show(call.connection.output, &answer, |value| list(value, columns))
        }
        ClientCommand::Unregister(call) => definitions::unregister(call).await,
        ClientCommand::Starters(call) => definitions::starters(call).await,
        ClientCommand::Incidents(call) => {
            let answer = Client::new(&call.connection)?.get(&["incidents"], &[]).await?;
            let columns = [
                ("incident", "incidentKey"),
                ("instance", "instanceKey"),
                ("process", "processId"),
                ("element", "elementId"),
                ("code", "code"),
                ("raised", "raisedAt"),
                ("message", "message"),
            ];
            show(call.connection.output, &answer, |value| list(value, columns))
        }
        ClientCommand::Retry(call) => work::retry(call).await,
        ClientCommand::Resolve(call) => repair::resolve(call).await,
        ClientCommand::SetVariables(call) => repair::set_variables(call).await,
        ClientCommand::Modify(call) => repair::modify(*call).await,
        ClientCommand::Migrate(call) => repair::migrate(call).await,
        ClientCommand::Restart(call) => repair::restart(*call).await,
        ClientCommand::MigrationCheck(call) => repair::migration_check(call).await,
        ClientCommand::Tasks(call) => {
            let answer = Client::new(&call.connection)?.get(&["user-tasks"], &[]).await?;
            let columns = [
                ("task", "userTaskKey"),
                ("instance", "instanceKey"),
                ("process", "processId"),
                ("element", "elementId"),
                ("name", "name"),
                ("assignee", "assignee"),
                ("created", "createdAt"),
            ];
            show(call.connection.output, &answer, |value| list(value, columns))
        }
        ClientCommand::CompleteTask(call) => work::complete_task(call).await,
        ClientCommand::Status(call) => {
            let answer = Client::new(&call.connection)?
                .get(&runtime("status"), &[])
                .await?;
            show(call.connection.output, &answer, admin::status)
        }
        ClientCommand::Pause(call) => admin::pause(call).await,
        ClientCommand::Resume(call) => {
            let answer = Client::new(&call.connection)?
                .post(&runtime("resume"), &json!({}), Duration::ZERO)
                .await?;
            show(call.connection.output, &answer, admin::status)
        }
        ClientCommand::DrainPlan(call) => {
            let answer = Client::new(&call.connection)?
                .get(&runtime("drain-plan"), &[])
                .await?;
            show(call.connection.output, &answer, admin::drain_plan)
        }
        ClientCommand::ForceDrain(call) => admin::force_drain(call).await,
        ClientCommand::Maintenance(command) => shells::maintenance(command).await,
        ClientCommand::Sources(call) => {
            let answer = Client::new(&call.connection)?
                .get(&runtime("status"), &[])
                .await?;
            show(call.connection.output, &answer, admin::sources)
        }
        ClientCommand::Audit(call) => audit::audit(call).await,
        ClientCommand::Shells(call) => shells::shells(call).await,
        ClientCommand::Reload(call) => shells::reload(call).await,
        ClientCommand::Retire(call) => shells::retire(call).await,
    }
}

fn runtime(action: &str) -> [&str; 3] {
    [RUNTIME[0], RUNTIME[1], action]
}

fn show(output: Output, answer: &Answer, table: impl FnOnce(&Value)) -> Result<(), Failure> {
    match output {
        Output::Json => terminal::line(&answer.text),
        Output::Table => table(&answer.value),
    }
    Ok(())
}

/// A body of what was given.
fn body<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let given = members
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect())
}

fn variables(given: Vec<(String, Value)>) -> Option<Value> {
    (!given.is_empty()).then(|| Value::Object(given.into_iter().collect::<Map<_, _>>()))
}

fn milliseconds(duration: Duration) -> Value {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).into()
}
