//! What other tools put into a model that would change a run and does not here: each is told when the model is deployed. What
//! only changes how a model looks or how fast another engine works is passed over.

use tidegate_model::Diagnostic;
use tidegate_model::document::{Element, Namespace};

use crate::compile::{Reader, VENDORS};

/// One name, what becomes of it, and what to do instead.
struct Row(&'static str, &'static str, &'static str);

const AS_ACTIVITY: &str = "model what it does as an activity, or remove it";

/// Extension elements of flow nodes.
const EXTENSIONS: &[Row] = &[
    Row(
        "executionListener",
        "the `executionListener` is not run",
        AS_ACTIVITY,
    ),
    Row(
        "executionListeners",
        "the `executionListeners` is not run",
        AS_ACTIVITY,
    ),
    Row("taskListener", "the `taskListener` is not run", AS_ACTIVITY),
    Row("taskListeners", "the `taskListeners` is not run", AS_ACTIVITY),
    Row("connector", "the `connector` is not run", AS_ACTIVITY),
    Row(
        "errorEventDefinition",
        "a failure of the work is not made an error by an expression: it is tried again, and then an incident",
        "let the worker report the error, and remove this",
    ),
    Row("formData", FORM, FORM_INSTEAD),
    Row("formProperty", FORM, FORM_INSTEAD),
    Row(
        "conditionalFilter",
        "the filter is not read: the condition is looked at when any variable changes",
        "say in the condition itself which values it waits for, and remove the filter",
    ),
];

const FORM: &str = "form fields of the model are neither shown nor checked";
const FORM_INSTEAD: &str = "name a form by its key or id, and check the results behind the task";

/// Attributes of flow nodes.
const ATTRIBUTES: &[Row] = &[
    Row(
        "initiator",
        "no variable is set to whoever starts the instance",
        "give the variable with the start, and remove the attribute",
    ),
    Row(
        "skipExpression",
        "the expression is not evaluated: the activity is always done",
        "lead a flow with this condition past the activity",
    ),
    Row(
        "triggerable",
        "nothing is waited for after the work: the activity completes with it",
        "put a receive task or a catch event behind it",
    ),
    Row("taskPriority", PRIORITY, PRIORITY_INSTEAD),
    Row("jobPriority", PRIORITY, PRIORITY_INSTEAD),
    Row("calledElementTenantId", TENANT, TENANT_INSTEAD),
    Row("decisionRefTenantId", TENANT, TENANT_INSTEAD),
];

const PRIORITY: &str = "jobs have no priorities: the oldest one of a type goes first";
const PRIORITY_INSTEAD: &str = "give what is urgent a job type of its own, and remove the attribute";
const TENANT: &str =
    "another tenant cannot be named: what is called is looked for in the tenant of the instance";
const TENANT_INSTEAD: &str = "deploy it for the same tenant, and remove the attribute";

/// Attributes of flow nodes that name code which would have to run.
const CODE: &[Row] = &[
    Row("variableMappingClass", MAPPING, MAPPING_INSTEAD),
    Row("variableMappingDelegateExpression", MAPPING, MAPPING_INSTEAD),
];

const MAPPING: &str = "the variables of the call are mapped by Java code, which cannot run here";
const MAPPING_INSTEAD: &str = "map them with <camunda:in/> and <camunda:out/>, or with a <zeebe:ioMapping/>";

/// Attributes of a process.
const OF_PROCESS: &[Row] = &[
    Row("candidateStarterGroups", STARTER, STARTER_INSTEAD),
    Row("candidateStarterUsers", STARTER, STARTER_INSTEAD),
    Row(
        "historyTimeToLive",
        "it does not say how long ended instances are kept here",
        "say it with tidegate:retention at the process, for example P30D",
    ),
];

const STARTER: &str =
    "it does not limit who may start the process: whoever has the permission to start instances may";
const STARTER_INSTEAD: &str = "give that permission to nobody else, and remove the attribute";

fn is_of_tool(namespace: &Namespace) -> bool {
    *namespace == Namespace::Zeebe || VENDORS.contains(namespace)
}

fn row<'a>(rows: &'a [Row], name: &str) -> Option<&'a Row> {
    rows.iter().find(|row| row.0 == name)
}

/// Tells what is not read of a flow node.
pub(super) fn tell(reader: &mut Reader<'_>) {
    let element = reader.element;
    for extension in element
        .extensions
        .iter()
        .filter(|found| is_of_tool(&found.namespace))
    {
        if let Some(Row(_, message, hint)) = row(EXTENSIONS, &extension.tag) {
            reader.warn_at(extension.position, "extension-ignored", message, hint);
        }
    }
    for attribute in element
        .attributes
        .iter()
        .filter(|found| is_of_tool(&found.namespace))
    {
        if attribute.value.trim().is_empty() || attribute.value.trim() == "false" {
            continue;
        }
        let told = |message: &str| format!("`{}`: {message}", attribute.name);
        if let Some(Row(_, message, hint)) = row(ATTRIBUTES, &attribute.name) {
            reader.warn_at(attribute.position, "extension-ignored", &told(message), hint);
        } else if let Some(Row(_, message, hint)) = row(CODE, &attribute.name) {
            let _: Option<()> = reader.refuse_at(attribute.position, "java-delegate", &told(message), hint);
        }
    }
}

/// Tells what is not read of a process.
pub(super) fn tell_of_process(process: &Element, keeps: bool, diagnostics: &mut Vec<Diagnostic>) {
    for attribute in process
        .attributes
        .iter()
        .filter(|found| is_of_tool(&found.namespace))
    {
        let is_said_otherwise = attribute.name == "historyTimeToLive" && keeps;
        if attribute.value.trim().is_empty() || is_said_otherwise {
            continue;
        }
        if let Some(Row(_, message, hint)) = row(OF_PROCESS, &attribute.name) {
            let warning =
                Diagnostic::warning("extension-ignored", format!("`{}`: {message}", attribute.name))
                    .hint(*hint)
                    .at(attribute.position)
                    .element(process.id());
            diagnostics.push(warning);
        }
    }
}
