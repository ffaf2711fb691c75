//! Repeated activities: the standard loop and the multi-instance activity, one turn after the other or all at once.
//!
//! The token activates the whole of the activity, which holds the attached events and a scope. Each turn is an instance
//! of the same element inside that scope, with its number and its item as variables of its own. No turn is kept once it
//! is done, and the output collection is put together once, at the end.

use std::sync::Arc;

use tidegate_expression::Value;
use tidegate_model::document::{Namespace, NodeId};
use tidegate_model::{ElementInstanceKey, Json, Variables};

use crate::compile::{Reader, VENDORS};
use crate::decide::{Step, Turn};
use crate::element::Active;
use crate::element::throw_event::{self, Throw};
use crate::event::{Event, Resume};
use crate::state::{ElementInstance, Stage, Turns};
use crate::text::{Computed, Failure};
use crate::visible::Visible;

/// The number of a turn, from 1, as a variable of that turn.
pub(crate) const LOOP_COUNTER: &str = "loopCounter";

/// Turns that one step activates.
const SLICE: u32 = 100;

/// How an activity is repeated.
#[derive(Debug)]
pub(crate) enum Repetition {
    Standard {
        test_before: bool,
        condition: Option<Computed>,
        maximum: Option<Computed>,
    },
    MultiInstance(MultiInstance),
}

/// A multi-instance activity.
#[derive(Debug)]
pub(crate) struct MultiInstance {
    is_sequential: bool,
    over: Over,
    input_element: Option<Arc<str>>,
    output_collection: Option<Arc<str>>,
    output_element: Option<Computed>,
    completion_condition: Option<Computed>,
    throws: TurnThrows,
}

/// What is thrown from the whole of the activity when a turn has ended: the standard's `behavior`.
#[derive(Debug)]
enum TurnThrows {
    /// For `All`: nothing.
    Nothing,
    /// For `None`: at the end of each turn.
    AtEach(Vec<Throw>),
    /// For `One`: at the end of the first turn.
    AtFirst(Vec<Throw>),
    /// For `Complex`: where a condition says so.
    Where(Vec<(Computed, Vec<Throw>)>),
}

/// What gives the number of turns.
#[derive(Debug)]
enum Over {
    Number(Computed),
    Collection(Computed),
    /// A list that a variable holds.
    Variable(Arc<str>),
}

/// Reads the loop characteristics of an activity. None where it has none, or where they were refused.
pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Box<Repetition>> {
    let document = reader.document;
    if let Some((node, _)) = document.child(reader.node, "standardLoopCharacteristics") {
        return standard(reader, node).map(Box::new);
    }
    let (node, _) = document.child(reader.node, "multiInstanceLoopCharacteristics")?;
    multi_instance(reader, node).map(|multi| Box::new(Repetition::MultiInstance(multi)))
}

fn standard(reader: &mut Reader<'_>, node: NodeId) -> Option<Repetition> {
    let document = reader.document;
    let element = document.get(node);
    let condition = inner_expression(reader, node, "loopCondition")?;
    let maximum = match element.attribute("loopMaximum").map(str::trim) {
        None | Some("") => inner_expression(reader, node, "loopMaximum")?,
        Some(text) => {
            if text.parse::<u32>().is_err() && text.parse::<f64>().is_ok() {
                let message = format!("loopMaximum `{text}` is not a number of turns");
                return reader.refuse_at(
                    element.attribute_position("loopMaximum"),
                    "loop-maximum-invalid",
                    &message,
                    "write a whole number that is not negative, or remove it",
                );
            }
            Some(reader.expression(text, None, element.attribute_position("loopMaximum"))?)
        }
    };
    if condition.is_none() && maximum.is_none() {
        return reader.refuse_at(
            element.position,
            "loop-without-end",
            "the loop has neither a condition nor a maximum, so it would never end",
            "add a loopCondition or a loopMaximum",
        );
    }
    Some(Repetition::Standard {
        test_before: element.attribute("testBefore").map(str::trim) == Some("true"),
        condition,
        maximum,
    })
}

fn multi_instance(reader: &mut Reader<'_>, node: NodeId) -> Option<MultiInstance> {
    let document = reader.document;
    let element = document.get(node);
    let is_sequential = element.attribute("isSequential").map(str::trim) == Some("true");
    let completion_condition = inner_expression(reader, node, "completionCondition")?;
    let cardinality = inner_expression(reader, node, "loopCardinality")?;
    if let Some(number) = &cardinality
        && number.text.trim().parse::<u32>().is_err()
        && number.text.trim().parse::<f64>().is_ok()
    {
        let message = format!(
            "loopCardinality `{}` is not a number of turns",
            number.text.trim()
        );
        return reader.refuse_at(
            element.position,
            "loop-cardinality-invalid",
            &message,
            "write a whole number that is not negative, or an expression that gives one",
        );
    }
    let zeebe = element.extension(&Namespace::Zeebe, "loopCharacteristics");
    let mut made = MultiInstance {
        is_sequential,
        over: Over::Number(Computed::read("0", None).ok()?),
        input_element: None,
        output_collection: None,
        output_element: None,
        completion_condition,
        throws: throws(reader, node)?,
    };
    if let Some(zeebe) = zeebe {
        let given = |name: &str| {
            zeebe
                .attribute(name)
                .map(str::trim)
                .filter(|text| !text.is_empty())
        };
        made.input_element = given("inputElement").map(Arc::from);
        made.output_collection = given("outputCollection").map(Arc::from);
        if let Some(text) = given("outputElement") {
            made.output_element = Some(reader.feel(text, zeebe.position)?);
        }
        if let Some(text) = given("inputCollection") {
            made.over = Over::Collection(reader.feel(text, zeebe.position)?);
            return Some(made);
        }
    }
    standard_data(reader, node, &mut made)?;
    let vendor = |name: &str| {
        let found = VENDORS
            .iter()
            .find_map(|vendor| element.attribute_in(vendor, name));
        found.map(str::trim).filter(|text| !text.is_empty())
    };
    if let Some(name) = vendor("elementVariable") {
        made.input_element = Some(name.into());
    }
    let reference = document.child(node, "loopDataInputRef").map(|(_, child)| child);
    let collection = match vendor("collection") {
        Some(text) => Some(reader.expression(text, None, element.position)?),
        None => None,
    };
    made.over = match (collection, reference, cardinality) {
        (Some(collection), _, _) => Over::Collection(collection),
        (None, Some(reference), _) => {
            Over::Variable(behind(reader, reference.text.trim(), "dataInputAssociation"))
        }
        (None, None, Some(number)) => Over::Number(number),
        (None, None, None) => {
            return reader.refuse_at(
                element.position,
                "loop-without-cardinality",
                "the multi-instance activity does not say how many turns it has",
                "add a loopCardinality, a loopDataInputRef or a zeebe:loopCharacteristics with an inputCollection",
            );
        }
    };
    Some(made)
}

/// Reads what is thrown at the end of turns.
fn throws(reader: &mut Reader<'_>, node: NodeId) -> Option<TurnThrows> {
    let document = reader.document;
    let element = document.get(node);
    let attribute = match element.attribute("behavior") {
        Some("None") => "noneBehaviorEventRef",
        Some("One") => "oneBehaviorEventRef",
        Some("Complex") => return complex(reader, node).map(TurnThrows::Where),
        Some(_) | None => return Some(TurnThrows::Nothing),
    };
    let Some(reference) = element.attribute(attribute) else {
        return Some(TurnThrows::Nothing);
    };
    let found = document.by_id(reference);
    let Some(definition) = found.filter(|found| reader.tag(*found).ends_with("EventDefinition")) else {
        return reader.refuse_at(
            element.attribute_position(attribute),
            "dangling-reference",
            &format!("there is no event definition `{reference}`"),
            "refer to an event definition of this file",
        );
    };
    let thrown = throw_event::read_all(reader, &[definition])?;
    Some(match attribute {
        "oneBehaviorEventRef" => TurnThrows::AtFirst(thrown),
        _ => TurnThrows::AtEach(thrown),
    })
}

fn complex(reader: &mut Reader<'_>, node: NodeId) -> Option<Vec<(Computed, Vec<Throw>)>> {
    let document = reader.document;
    let mut found = Vec::new();
    for (definition, _) in document
        .children(node)
        .filter(|(_, child)| child.tag == "complexBehaviorDefinition")
    {
        let Some(condition) = inner_expression(reader, definition, "condition")? else {
            continue;
        };
        let event = document.child(definition, "event").map(|(event, _)| event);
        let definitions = event.into_iter().flat_map(|event| document.children(event));
        let definitions: Vec<NodeId> = definitions
            .filter(|(_, child)| child.tag.ends_with("EventDefinition"))
            .map(|(node, _)| node)
            .collect();
        found.push((condition, throw_event::read_all(reader, &definitions)?));
    }
    Some(found)
}

/// Reads the items of the plain standard: `inputDataItem`, `outputDataItem`, `loopDataOutputRef`.
fn standard_data(reader: &mut Reader<'_>, node: NodeId, made: &mut MultiInstance) -> Option<()> {
    let document = reader.document;
    let item = |tag: &str| {
        let (_, item) = document.child(node, tag)?;
        item.name().or(item.id()).map(str::to_owned)
    };
    if let Some(name) = item("inputDataItem") {
        made.input_element = Some(name.into());
    }
    if let Some((_, output)) = document.child(node, "loopDataOutputRef") {
        made.output_collection = Some(behind(reader, output.text.trim(), "dataOutputAssociation"));
        if let Some(name) = item("outputDataItem") {
            let position = document.get(node).position;
            made.output_element = Some(reader.expression(&name, None, position)?);
        }
    }
    Some(())
}

/// The variable behind an input or output of the activity: what an association connects it with.
fn behind(reader: &Reader<'_>, reference: &str, association: &str) -> Arc<str> {
    let document = reader.document;
    let (own, other) = match association {
        "dataInputAssociation" => ("targetRef", "sourceRef"),
        _ => ("sourceRef", "targetRef"),
    };
    let text = |node: NodeId, tag: &str| document.child(node, tag).map(|(_, child)| child.text.trim());
    let mut associations = document
        .children(reader.node)
        .filter(|(_, child)| child.tag == association);
    let found =
        associations.find_map(|(node, _)| (text(node, own)? == reference).then(|| text(node, other))?);
    reader.data_name(found.unwrap_or(reference)).into()
}

/// Reads the expression inside a child; none inside where there is none.
fn inner_expression(reader: &mut Reader<'_>, node: NodeId, tag: &str) -> Option<Option<Computed>> {
    let document = reader.document;
    match document
        .child(node, tag)
        .filter(|(_, child)| !child.text.trim().is_empty())
    {
        None => Some(None),
        Some((_, child)) => {
            let language = child.attribute("language");
            reader
                .expression(child.text.trim(), language, child.position)
                .map(Some)
        }
    }
}

impl MultiInstance {
    fn items(&self, scope: &Visible<'_>) -> Result<Vec<Json>, Box<Failure>> {
        match &self.over {
            Over::Collection(collection) => items(
                &collection.text,
                &collection.evaluate("the input collection", scope)?,
            ),
            Over::Variable(name) => {
                let value = scope
                    .json(name)
                    .and_then(|json| Value::from_json(json.text()).ok());
                items(name, &value.unwrap_or(Value::Null))
            }
            Over::Number(_) => Ok(Vec::new()),
        }
    }
}

impl Repetition {
    /// True if a repetition under way can go on as this one.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Standard { .. }, Self::Standard { .. }) => true,
            (Self::MultiInstance(one), Self::MultiInstance(other)) => {
                one.is_sequential == other.is_sequential
            }
            (Self::Standard { .. }, Self::MultiInstance(_))
            | (Self::MultiInstance(_), Self::Standard { .. }) => false,
        }
    }

    /// The variable that the outputs of the turns go to.
    pub(crate) fn output_collection(&self) -> Option<&Arc<str>> {
        match self {
            Self::Standard { .. } => None,
            Self::MultiInstance(multi) => multi.output_collection.as_ref(),
        }
    }

    /// The variable of a turn that holds its item.
    pub(crate) fn input_element(&self) -> Option<&Arc<str>> {
        match self {
            Self::Standard { .. } => None,
            Self::MultiInstance(multi) => multi.input_element.as_ref(),
        }
    }

    /// The variable that gives the output of a turn, if that is all the output says: each turn has its own.
    pub(crate) fn output_variable(&self) -> Option<&str> {
        match self {
            Self::MultiInstance(MultiInstance {
                output_element: Some(element),
                ..
            }) => Some(element.text.trim()).filter(|text| is_name(text)),
            Self::MultiInstance(_) | Self::Standard { .. } => None,
        }
    }

    /// The whole activity begins.
    pub(crate) fn begin(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        let scope = turn.visible(me.key, None);
        let (total, items) = match self {
            Self::Standard { maximum, .. } => match maximum {
                Some(maximum) => (
                    Some(count(
                        "the loop maximum",
                        maximum.evaluate("the loop maximum", &scope)?,
                        maximum,
                    )?),
                    None,
                ),
                None => (None, None),
            },
            Self::MultiInstance(multi) => match &multi.over {
                Over::Number(number) => {
                    let value = number.evaluate("the loop cardinality", &scope)?;
                    (Some(count("the loop cardinality", value, number)?), None)
                }
                Over::Collection(_) | Over::Variable(_) => {
                    let items = multi.items(&scope)?;
                    let total = u32::try_from(items.len()).unwrap_or(u32::MAX);
                    (Some(total), Some(items))
                }
            },
        };
        turn.event(Event::LoopStarted {
            key: me.key,
            element: me.element,
            total,
            items,
        });
        turn.then(Step::Next(me.key));
        Ok(())
    }

    /// A turn has ended, or the first ones are to begin.
    pub(crate) fn next(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        let Some(turns) = me.state.turns() else {
            return Ok(());
        };
        if me.state.stage != Stage::Running {
            return Ok(());
        }
        let alive = me.state.scope.as_deref().map_or(0, |scope| scope.children.len());
        let (more, is_over, at_once) = match self {
            Self::Standard {
                test_before,
                condition,
                ..
            } => {
                let within = turns.total.is_none_or(|total| turns.begun < total);
                let asks = *test_before || turns.begun > 0;
                let holds = match condition {
                    Some(condition) if within && asks && alive == 0 => {
                        let front = counters(turns, alive, turns.completed.max(1));
                        condition.truth("the loop condition", &turn.visible(me.key, Some(&front)))?
                    }
                    Some(_) | None => true,
                };
                (within && holds && alive == 0, !(within && holds) && alive == 0, 1)
            }
            Self::MultiInstance(multi) => {
                let total = turns.total.unwrap_or_default();
                let enough = match &multi.completion_condition {
                    Some(condition) if turns.completed > 0 => {
                        let front = counters(turns, alive, turns.completed);
                        condition.truth("the completion condition", &turn.visible(me.key, Some(&front)))?
                    }
                    Some(_) | None => false,
                };
                let may = !enough && turns.begun < total && (alive == 0 || !multi.is_sequential);
                let slice = if multi.is_sequential { 1 } else { SLICE };
                let at_once = slice.min(total - turns.begun.min(total));
                (may, enough || turns.begun >= total && alive == 0, at_once)
            }
        };
        if is_over {
            turn.empty_scope(me.key, None);
            turn.event(Event::LoopEnded {
                key: me.key,
                element: me.element,
            });
            turn.then(Step::Complete(me.key));
        } else if more {
            turn.room_for(at_once as usize)?;
            for _ in 0..at_once {
                let key = turn.next_key();
                turn.event(Event::LoopTurnActivated {
                    key,
                    element: me.element,
                    parent: me.key,
                });
                turn.then(Step::Activate(key));
            }
            let follows = turns.total.is_some_and(|total| turns.begun + at_once < total);
            if at_once == SLICE && follows {
                turn.then(Step::Next(me.key));
            }
        }
        Ok(())
    }

    /// A turn is left: what the whole of the activity throws because of that.
    fn throw(&self, turn: &mut Turn<'_>, whole: ElementInstanceKey) -> Result<(), Box<Failure>> {
        let Self::MultiInstance(multi) = self else {
            return Ok(());
        };
        let instance = turn.instance;
        let Some((state, turns)) = instance
            .elements
            .get(&whole)
            .and_then(|state| Some((state, state.turns()?)))
        else {
            return Ok(());
        };
        let me = Active {
            key: whole,
            element: state.element,
            info: turn.definition.element(state.element),
            state,
            locals: &state.variables,
        };
        match &multi.throws {
            TurnThrows::Nothing => {}
            TurnThrows::AtFirst(_) if turns.completed > 0 => {}
            TurnThrows::AtFirst(throws) | TurnThrows::AtEach(throws) => {
                throws.iter().try_for_each(|throw| throw.throw(turn, &me))?;
            }
            TurnThrows::Where(choices) => {
                // The turn that is left counts as completed.
                let alive = state.scope.as_deref().map_or(0, |scope| scope.children.len());
                let completed = turns.completed + 1;
                let after = Turns {
                    completed,
                    total: turns.total,
                    begun: turns.begun,
                    ..Turns::default()
                };
                let front = counters(&after, alive.saturating_sub(1), completed);
                for (condition, throws) in choices {
                    let scope = turn.visible(whole, Some(&front));
                    if condition.truth("the condition of a complex behaviour", &scope)? {
                        throws.iter().try_for_each(|throw| throw.throw(turn, &me))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A turn is left: its part of the output collection, if it has one.
    fn output(&self, turn: &Turn<'_>, key: ElementInstanceKey) -> Result<Option<Json>, Box<Failure>> {
        match self {
            Self::MultiInstance(MultiInstance {
                output_collection: Some(_),
                output_element: Some(element),
                ..
            }) => {
                let value = element.evaluate("the output element", &turn.visible(key, None))?;
                Ok(Some(Json::trusted(value.to_json())))
            }
            Self::MultiInstance(_) | Self::Standard { .. } => Ok(None),
        }
    }
}

impl Turn<'_> {
    /// A turn of a repeated activity has done its work.
    pub(crate) fn leave_turn(&mut self, key: ElementInstanceKey, state: &ElementInstance) {
        let (element, parent) = (state.element, state.parent);
        let mark = self.out.mark();
        if let Some(repetition) = self.definition.element(element).repetition.as_deref() {
            if let Err(failure) = repetition.throw(self, parent) {
                self.out.back_to(mark);
                return self.incident(key, element, Resume::Completion, *failure);
            }
            match repetition.output(self, key) {
                Ok(Some(value)) => self.event(Event::LoopOutputCollected { key, element, value }),
                Ok(None) => {}
                Err(failure) => {
                    self.out.back_to(mark);
                    return self.incident(key, element, Resume::Completion, *failure);
                }
            }
        }
        self.event(Event::ElementCompleted { key, element });
        self.then(Step::Next(parent));
    }

    /// Fails where `count` more element instances would be too many.
    pub(crate) fn room_for(&self, count: usize) -> Result<(), Box<Failure>> {
        let limit = self.definition.limits.live_elements;
        if self.instance.elements.len() + count <= limit {
            return Ok(());
        }
        Err(Failure::new(
            "too-many-elements",
            format!(
                "the instance would have more than {limit} live elements. Let some of them end and retry, or cancel it."
            ),
        ))
    }
}

/// What conditions can ask about the turns: by the names of the standard, and by those of the Java engines.
fn counters(turns: &Turns, alive: usize, counter: u32) -> Variables {
    let total = turns.total.unwrap_or(turns.begun);
    let terminated = turns.begun - turns.completed.min(turns.begun);
    let terminated = (terminated as usize).saturating_sub(alive);
    let numbers = [
        (LOOP_COUNTER, counter as usize),
        ("numberOfInstances", total as usize),
        ("numberOfActiveInstances", alive),
        ("numberOfCompletedInstances", turns.completed as usize),
        ("numberOfTerminatedInstances", terminated),
        ("nrOfInstances", total as usize),
        ("nrOfActiveInstances", alive),
        ("nrOfCompletedInstances", turns.completed as usize),
    ];
    numbers
        .into_iter()
        .map(|(name, value)| (name, Json::of(&value)))
        .collect()
}

fn is_name(text: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || c == '_';
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(inner)
        && !matches!(text, "true" | "false" | "null")
}

fn count(what: &str, value: Value, computed: &Computed) -> Result<u32, Box<Failure>> {
    let json = value.to_json();
    let text = serde_json::from_str::<String>(&json).unwrap_or(json);
    let trimmed = text.trim();
    let whole = trimmed.strip_suffix(".0").unwrap_or(trimmed);
    whole.parse().map_err(|_| {
        Failure::new(
            "expression-failed",
            format!(
                "{what}: `{}` gave {trimmed} and not a whole number that is not negative. Correct the variables and \
                 retry.",
                computed.text
            ),
        )
    })
}

fn items(text: &str, value: &Value) -> Result<Vec<Json>, Box<Failure>> {
    match value.as_list() {
        Some(items) => Ok(items.iter().map(|item| Json::trusted(item.to_json())).collect()),
        None => Err(Failure::new(
            "expression-failed",
            format!(
                "the input collection: `{}` gave {} and not a list. Correct the variables and retry.",
                text,
                value.type_name()
            ),
        )),
    }
}
