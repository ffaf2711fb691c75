//! The call activity: an instance of another process runs for it, or a global task of the file stands in its place.

use std::sync::Arc;

use tidegate_model::document::{Extension, Namespace, NodeId};
use tidegate_model::effect::Binding;
use tidegate_model::{ElementInstanceKey, InstanceKey, Json, Rejection, Variables};

use crate::compile::{Reader, VENDORS};
use crate::decide::{Step, Turn};
use crate::element::{Active, Behaviour, business_rule_task, pass_through, script_task, user_task};
use crate::event::{ChildOutcome, Event, Resume};
use crate::state::ElementInstance;
use crate::text::{Computed, Failure, Text};
use crate::visible::Visible;

/// What a call activity calls, and what goes in and comes out.
#[derive(Debug)]
pub(crate) struct CallSpec {
    process: Text,
    binding: BindingSpec,
    business_key: Option<Text>,
    /// Everything that is visible goes in.
    all_in: bool,
    /// The call activity's own variables go in: its input mappings.
    own_in: bool,
    inputs: Vec<Exchange>,
    /// Everything comes out.
    all_out: bool,
    outputs: Vec<Exchange>,
}

#[derive(Debug)]
enum BindingSpec {
    Latest,
    Deployment,
    Version(Text),
    VersionTag(Text),
}

/// One value that crosses the call.
#[derive(Debug)]
struct Exchange {
    target: Arc<str>,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Variable(Arc<str>),
    Expression(Computed),
}

#[derive(Debug)]
struct CallActivity {
    call: CallSpec,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let element = reader.element;
    // No vocabulary that is read has it; elsewhere it begins a process without waiting for its end.
    let waits = element
        .attributes
        .iter()
        .find(|found| found.name == "waitForCompletion");
    if let Some(waits) = waits.filter(|waits| waits.value.trim() == "false") {
        return reader.refuse_at(
            waits.position,
            "call-without-waiting",
            "a call activity waits for the end of the process that it calls",
            "remove waitForCompletion, or begin the other process by a message that its start event receives",
        );
    }
    if let Some(zeebe) = element.extension(&Namespace::Zeebe, "calledElement") {
        return read_zeebe(reader, zeebe);
    }
    let called = element
        .attribute("calledElement")
        .map(str::trim)
        .unwrap_or_default();
    if let Some(global) = global_task(reader, called) {
        return read_global(reader, global);
    }
    if called.is_empty() {
        let by_decision = ["caseRef", "calledElementType"]
            .into_iter()
            .find_map(|name| reader.vendor_attribute(name));
        let hint = match by_decision {
            Some(_) => "cases are not executed: call a process by calledElement",
            None => "set calledElement to the id of a process, or add <zeebe:calledElement processId=\"…\"/>",
        };
        return reader.refuse(
            "called-element-missing",
            "it does not say which process it calls",
            hint,
        );
    }
    let process = reader.text(called, element.attribute_position("calledElement"))?;
    let binding = vendor_binding(reader)?;
    let mut call = CallSpec {
        process,
        binding,
        business_key: None,
        all_in: reader.vendor_attribute("inheritVariables") == Some("true"),
        own_in: true,
        inputs: Vec::new(),
        all_out: false,
        outputs: Vec::new(),
    };
    if let Some(text) = reader.vendor_attribute("businessKey") {
        call.business_key = Some(reader.text(text, element.position)?);
    }
    for extension in element
        .extensions
        .iter()
        .filter(|found| VENDORS.contains(&found.namespace))
    {
        match extension.tag.as_str() {
            "in" => read_in(reader, extension, &mut call)?,
            "out" => {
                if extension.attribute("variables") == Some("all") {
                    call.all_out = true;
                } else {
                    call.outputs.push(exchange(reader, extension)?);
                }
            }
            _ => {}
        }
    }
    Some(Box::new(CallActivity { call }))
}

fn read_zeebe(reader: &mut Reader<'_>, called: &Extension) -> Option<Box<dyn Behaviour>> {
    let given = |name: &str| {
        called
            .attribute(name)
            .map(str::trim)
            .filter(|text| !text.is_empty())
    };
    let Some(process) = given("processId") else {
        return reader.refuse_at(
            called.position,
            "called-element-missing",
            "it does not say which process it calls",
            "set processId to the id of a process, or to an expression that gives one",
        );
    };
    let process = reader.text(process, called.position)?;
    let binding = match given("bindingType") {
        None | Some("latest") => BindingSpec::Latest,
        Some("deployment") => BindingSpec::Deployment,
        Some("versionTag") => match given("versionTag") {
            Some(tag) => BindingSpec::VersionTag(reader.text(tag, called.position)?),
            None => return binding_invalid(reader, "the binding is to a version tag, and there is none"),
        },
        Some(other) => return binding_invalid(reader, &format!("`{other}` is not a binding")),
    };
    Some(Box::new(CallActivity {
        call: CallSpec {
            process,
            binding,
            business_key: None,
            all_in: given("propagateAllParentVariables") != Some("false"),
            own_in: true,
            inputs: Vec::new(),
            all_out: given("propagateAllChildVariables") != Some("false"),
            outputs: Vec::new(),
        },
    }))
}

fn binding_invalid<T>(reader: &mut Reader<'_>, message: &str) -> Option<T> {
    let hint = "use latest, deployment, version or versionTag, the last two with their value";
    reader.refuse("call-binding-invalid", message, hint)
}

fn vendor_binding(reader: &mut Reader<'_>) -> Option<BindingSpec> {
    let position = reader.element.position;
    let version = reader.vendor_attribute("calledElementVersion");
    let tag = reader.vendor_attribute("calledElementVersionTag");
    match reader.vendor_attribute("calledElementBinding") {
        None | Some("latest" | "") => Some(BindingSpec::Latest),
        Some("deployment") => Some(BindingSpec::Deployment),
        Some("version") => match version {
            Some(version) => reader.text(version, position).map(BindingSpec::Version),
            None => binding_invalid(reader, "the binding is to a version, and there is none"),
        },
        Some("versionTag") => match tag {
            Some(tag) => reader.text(tag, position).map(BindingSpec::VersionTag),
            None => binding_invalid(reader, "the binding is to a version tag, and there is none"),
        },
        Some(other) => binding_invalid(reader, &format!("`{other}` is not a binding")),
    }
}

fn read_in(reader: &mut Reader<'_>, extension: &Extension, call: &mut CallSpec) -> Option<()> {
    if let Some(text) = extension.attribute("businessKey") {
        call.business_key = Some(reader.text(text, extension.position)?);
    } else if extension.attribute("variables") == Some("all") {
        call.all_in = extension.attribute("local") != Some("true");
    } else {
        call.inputs.push(exchange(reader, extension)?);
    }
    Some(())
}

fn exchange(reader: &mut Reader<'_>, extension: &Extension) -> Option<Exchange> {
    let given = |name: &str| {
        extension
            .attribute(name)
            .map(str::trim)
            .filter(|text| !text.is_empty())
    };
    let source = match (given("source"), given("sourceExpression")) {
        (Some(name), _) => Source::Variable(name.into()),
        (None, Some(text)) => Source::Expression(reader.expression(text, None, extension.position)?),
        (None, None) => {
            return reader.refuse_at(
                extension.position,
                "mapping-source-missing",
                "the mapping does not say what it passes",
                "set source, sourceExpression or variables=\"all\"",
            );
        }
    };
    let Some(target) = given("target").or(given("source")) else {
        return reader.refuse_at(
            extension.position,
            "mapping-target-missing",
            "the mapping does not say which variable it writes",
            "set target to the name of a variable",
        );
    };
    Some(Exchange {
        target: target.into(),
        source,
    })
}

fn global_task(reader: &Reader<'_>, called: &str) -> Option<NodeId> {
    let found = reader.document.by_id(called)?;
    reader.tag(found).starts_with("global").then_some(found)
}

/// A global task of the file is done in the place of the call.
fn read_global(reader: &mut Reader<'_>, global: NodeId) -> Option<Box<dyn Behaviour>> {
    let tag = reader.tag(global);
    let mut inner = reader.inside(global);
    match tag {
        "globalScriptTask" => script_task::read(&mut inner),
        "globalUserTask" => user_task::read(&mut inner),
        "globalBusinessRuleTask" => business_rule_task::read(&mut inner),
        _ => pass_through::read_task(&mut inner),
    }
}

impl Behaviour for CallActivity {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        let call = &self.call;
        let scope = turn.visible(me.key, Some(me.locals));
        let process_id = required("the called process", &call.process, &scope)?;
        let binding = match &call.binding {
            BindingSpec::Latest => Binding::Latest,
            BindingSpec::Deployment => Binding::Deployment,
            BindingSpec::VersionTag(tag) => Binding::VersionTag(required("the version tag", tag, &scope)?),
            BindingSpec::Version(version) => {
                let text = required("the version", version, &scope)?;
                let version = text.trim().parse().map_err(|_| {
                    let message = format!("`{text}` is not a version. Correct the variables and retry.");
                    Failure::new("expression-failed", message)
                })?;
                Binding::Version(version)
            }
        };
        let business_key = match &call.business_key {
            Some(text) => text
                .string("the business key", &scope)?
                .filter(|key| !key.is_empty()),
            None => None,
        };
        let mut variables = match call.all_in {
            true => turn.instance.visible(me.key),
            false => Variables::new(),
        };
        if call.own_in {
            variables.merge(me.locals.clone());
        }
        for exchange in &call.inputs {
            let value = exchange.value("an input of the call", &scope)?;
            variables.set(Arc::clone(&exchange.target), value);
        }
        let child = InstanceKey(turn.keys.next_key());
        turn.event(Event::ChildCalled {
            key: me.key,
            element: me.element,
            child,
            process_id,
            binding,
            variables,
            business_key,
        });
        Ok(())
    }

    fn call(&self) -> Option<&CallSpec> {
        Some(&self.call)
    }
}

impl CallSpec {
    /// What of the child's variables is needed.
    fn kept(&self, mut variables: Variables, all: bool) -> Variables {
        if all || self.all_out {
            return variables;
        }
        let by_name = |exchange: &Exchange| match &exchange.source {
            Source::Variable(name) => Some(Arc::clone(name)),
            Source::Expression(_) => None,
        };
        let names: Option<Vec<_>> = self.outputs.iter().map(by_name).collect();
        let Some(names) = names else { return variables };
        let mut kept = Variables::new();
        for (name, value) in std::mem::take(&mut variables) {
            if names.contains(&name) {
                kept.set(name, value);
            }
        }
        kept
    }

    /// What comes out of the child, where mappings say so.
    pub(crate) fn results(
        &self,
        turn: &Turn<'_>,
        key: ElementInstanceKey,
        returned: &Variables,
    ) -> Result<Option<Variables>, Box<Failure>> {
        if self.outputs.is_empty() {
            return Ok((!self.all_out).then(Variables::new));
        }
        let mut results = if self.all_out {
            returned.clone()
        } else {
            Variables::new()
        };
        let scope = turn.visible(key, Some(returned));
        for exchange in &self.outputs {
            let value = match &exchange.source {
                Source::Variable(name) => returned
                    .get(name)
                    .cloned()
                    .unwrap_or_else(|| Json::trusted("null")),
                Source::Expression(_) => exchange.value("an output of the call", &scope)?,
            };
            results.set(Arc::clone(&exchange.target), value);
        }
        Ok(Some(results))
    }
}

impl Exchange {
    fn value(&self, what: &str, scope: &Visible<'_>) -> Result<Json, Box<Failure>> {
        match &self.source {
            Source::Variable(name) => Ok(scope.json(name).cloned().unwrap_or_else(|| Json::trusted("null"))),
            Source::Expression(expression) => {
                let value = expression.evaluate(&format!("{what}, `{}`", self.target), scope)?;
                Ok(Json::trusted(value.to_json()))
            }
        }
    }
}

fn required(what: &str, text: &Text, scope: &Visible<'_>) -> Result<String, Box<Failure>> {
    let value = text.string(what, scope)?.map(|value| value.trim().to_owned());
    value.filter(|value| !value.is_empty()).ok_or_else(|| {
        Failure::new(
            "expression-failed",
            format!("{what}: the expression gave nothing. Set the variables and retry."),
        )
    })
}

/// What comes from the called instance.
impl<'a> Turn<'a> {
    pub(crate) fn child_completed(
        &mut self,
        owner: ElementInstanceKey,
        child: InstanceKey,
        variables: Variables,
    ) -> Result<(), Rejection> {
        let element = self.caller(owner, child)?.element;
        if self.instance.is_cancelling() {
            self.call_gone(owner, child, ChildOutcome::Completed);
            return Ok(());
        }
        let info = self.definition.element(element);
        let maps = info
            .mapping
            .as_deref()
            .is_some_and(|mapping| !mapping.outputs.is_empty());
        let variables = match info.behaviour.call() {
            Some(call) => call.kept(variables, maps),
            None => variables,
        };
        self.event(Event::ChildEnded {
            key: owner,
            element,
            child,
            outcome: ChildOutcome::Completed,
            variables,
        });
        self.then(Step::Complete(owner));
        Ok(())
    }

    pub(crate) fn child_faulted(
        &mut self,
        owner: ElementInstanceKey,
        child: InstanceKey,
        (code, message, variables): (&str, String, Variables),
    ) -> Result<(), Rejection> {
        let element = self.caller(owner, child)?.element;
        if self.instance.is_cancelling() {
            self.call_gone(owner, child, ChildOutcome::Faulted);
            return Ok(());
        }
        self.event(Event::ChildEnded {
            key: owner,
            element,
            child,
            outcome: ChildOutcome::Faulted,
            variables: Variables::new(),
        });
        self.throw(owner, code, message, variables);
        Ok(())
    }

    pub(crate) fn child_escalated(
        &mut self,
        owner: ElementInstanceKey,
        child: InstanceKey,
        code: &str,
        variables: Variables,
    ) -> Result<(), Rejection> {
        self.caller(owner, child)?;
        self.escalate(owner, code, variables);
        Ok(())
    }

    /// The child is gone and nothing came of it: a person decides.
    pub(crate) fn child_lost(
        &mut self,
        owner: ElementInstanceKey,
        child: InstanceKey,
        (code, message): (&'static str, String),
    ) -> Result<(), Rejection> {
        let element = self.caller(owner, child)?.element;
        let outcome = match code {
            "child-cancelled" => ChildOutcome::Cancelled,
            _ => ChildOutcome::NotStarted,
        };
        if self.instance.is_cancelling() {
            self.call_gone(owner, child, outcome);
            return Ok(());
        }
        self.event(Event::ChildEnded {
            key: owner,
            element,
            child,
            outcome,
            variables: Variables::new(),
        });
        self.incident(owner, element, Resume::Call, Failure { code, message });
        Ok(())
    }

    fn caller(
        &self,
        owner: ElementInstanceKey,
        child: InstanceKey,
    ) -> Result<&'a ElementInstance, Rejection> {
        let state = self.instance.elements.get(&owner);
        let calls = |state: &&ElementInstance| state.call().is_some_and(|call| call.child == child);
        state.filter(calls).ok_or(Rejection::NoSuchChild(owner))
    }
}
