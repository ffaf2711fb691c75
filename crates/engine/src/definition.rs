//! A compiled process: an index-based graph whose elements carry their behaviour. Immutable and shared.

use std::sync::{Arc, OnceLock};

use minicbor::{Decode, Encode};
use tidegate_model::{ElementIndex, Timestamp, Variables};

use crate::compile::Limits;
use crate::element::{Behaviour, MessageCorrelation, Repetition, WhenInterrupted};
use crate::event::Event;
use crate::mapping::Mapping;
use crate::reach::Reach;
use crate::text::Computed;

/// A sequence flow of a definition: its position in document order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct FlowIndex(#[n(0)] pub u32);

impl FlowIndex {
    /// As an index into a slice.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One executable process of one file.
#[derive(Debug)]
pub struct Definition {
    pub(crate) process_id: Arc<str>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) version_tag: Option<Arc<str>>,
    pub(crate) settings: crate::compile::ProcessSettings,
    pub(crate) elements: Vec<ElementInfo>,
    pub(crate) flows: Vec<Flow>,
    /// Where the process begins when no start event is named.
    pub(crate) starts: Vec<ElementIndex>,
    pub(crate) correlations: Vec<MessageCorrelation>,
    pub(crate) limits: Limits,
    /// The event sub-processes at the top.
    pub(crate) listeners: Vec<ElementIndex>,
    /// True if there is a gateway that is asked only when nothing else goes on.
    pub(crate) has_late_joins: bool,
    /// True if there is a gateway that waits for the rest of its tokens after it has let some through.
    pub(crate) has_complex_gateways: bool,
    /// True if there is a gateway that variables can make ready.
    pub(crate) has_data_joins: bool,
    /// True if there is a condition that is waited for.
    pub(crate) has_conditions: bool,
}

/// One flow node of a definition.
#[derive(Debug)]
pub struct ElementInfo {
    /// The BPMN id.
    pub id: Arc<str>,
    /// The name.
    pub name: Option<Arc<str>>,
    /// The BPMN tag, for example `serviceTask`.
    pub kind: &'static str,
    /// The sub-process around it; none at the top.
    pub parent: Option<ElementIndex>,
    pub(crate) behaviour: Box<dyn Behaviour>,
    pub(crate) is_activity: bool,
    pub(crate) incoming: Vec<FlowIndex>,
    pub(crate) outgoing: Vec<FlowIndex>,
    pub(crate) default: Option<FlowIndex>,
    /// The boundary events attached to it.
    pub(crate) boundaries: Vec<ElementIndex>,
    /// For a boundary event, what it is attached to.
    pub(crate) host: Option<ElementIndex>,
    /// For a sub-process, where it begins.
    pub(crate) starts: Vec<ElementIndex>,
    pub(crate) mapping: Option<Box<Mapping>>,
    /// Tokens that must arrive before it is activated.
    pub(crate) start_quantity: u32,
    /// Tokens that it puts on each outgoing flow.
    pub(crate) completion_quantity: u32,
    /// For a sub-process, the event sub-processes inside it.
    pub(crate) listeners: Vec<ElementIndex>,
    /// For an event with several definitions, one part for each.
    pub(crate) parts: Vec<ElementIndex>,
    /// For such a part, its event.
    pub(crate) part_of: Option<ElementIndex>,
    /// For an event behind a gateway that creates instances, that gateway.
    pub(crate) instantiated_by: Option<ElementIndex>,
    /// Which elements lead to which incoming flow, for a gateway that waits for what can still come.
    pub(crate) reach: OnceLock<Reach>,
    /// Data objects and properties of its own, which begin without a value.
    pub(crate) declared: Vec<Arc<str>>,
    /// How it is repeated.
    pub(crate) repetition: Option<Box<Repetition>>,
    /// What becomes of its work when that is interrupted.
    pub(crate) when_interrupted: WhenInterrupted,
    /// Only compensation activates it.
    pub(crate) is_for_compensation: bool,
    /// What it does begins only when its activation is committed (`asyncBefore`).
    pub(crate) commit_before: bool,
    /// What follows begins only when its completion is committed (`asyncAfter`).
    pub(crate) commit_after: bool,
    /// The activity that its compensation boundary event leads to.
    pub(crate) compensation: Option<ElementIndex>,
    /// The event sub-process inside it that compensates it.
    pub(crate) compensation_sub_process: Option<ElementIndex>,
}

/// One sequence flow.
#[derive(Debug)]
pub struct Flow {
    /// The BPMN id.
    pub id: Arc<str>,
    /// Where it comes from.
    pub source: ElementIndex,
    /// Where it goes.
    pub target: ElementIndex,
    pub(crate) condition: Option<Computed>,
}

/// A start event that can create an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Starter {
    /// The start event.
    pub element: ElementIndex,
    /// What sets it off.
    pub trigger: StarterTrigger,
}

/// What sets a start event off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StarterTrigger {
    /// A start request.
    None,
    /// A message of this name.
    Message(Arc<str>),
    /// A signal of this name.
    Signal(Arc<str>),
    /// A due timer, with what the model says of it; see [`Definition::next_start_timer`].
    Timer(Arc<str>),
}

impl Definition {
    /// True if an instance of it may call another one.
    pub fn may_call(&self) -> bool {
        self.elements.iter().any(|info| info.behaviour.call().is_some())
    }

    /// The BPMN id of the process.
    pub fn process_id(&self) -> &Arc<str> {
        &self.process_id
    }

    /// True if the model has more to say about lost work of this element than that it is done again.
    pub fn is_unsafe_to_rerun(&self, element_id: &str) -> bool {
        let mut elements = self.elements.iter();
        elements.any(|info| *info.id == *element_id && info.when_interrupted != WhenInterrupted::Rerun)
    }

    /// The name of the process.
    pub fn name(&self) -> Option<&Arc<str>> {
        self.name.as_ref()
    }

    /// How many instances there may be, and how long they are remembered, as the model says.
    pub fn settings(&self) -> &crate::compile::ProcessSettings {
        &self.settings
    }

    /// The author's own version text.
    pub fn version_tag(&self) -> Option<&Arc<str>> {
        self.version_tag.as_ref()
    }

    /// Every flow node in document order, then the parts of events with several definitions.
    pub fn elements(&self) -> &[ElementInfo] {
        &self.elements
    }

    /// One flow node.
    ///
    /// # Panics
    /// The index is not of this definition.
    pub fn element(&self, element: ElementIndex) -> &ElementInfo {
        &self.elements[element.index()]
    }

    /// The flow node with this BPMN id.
    pub fn element_by_id(&self, id: &str) -> Option<ElementIndex> {
        let position = self.elements.iter().position(|element| &*element.id == id)?;
        u32::try_from(position).ok().map(ElementIndex)
    }

    /// Every sequence flow in document order.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    pub(crate) fn flow(&self, flow: FlowIndex) -> &Flow {
        &self.flows[flow.index()]
    }

    /// The correlation key of a message that was published without one, where the model's correlation properties read
    /// it from the payload.
    pub fn correlation_key(&self, message_name: &str, payload: &Variables) -> Option<String> {
        let found = self
            .correlations
            .iter()
            .find(|found| &*found.message_name == message_name);
        found?.key_of(payload)
    }

    /// Its start events, in document order.
    pub fn starters(&self) -> Vec<Starter> {
        let at_top = self
            .elements
            .iter()
            .enumerate()
            .filter(|(_, element)| element.parent.is_none());
        at_top
            .filter_map(|(position, element)| {
                let trigger = match element.instantiated_by {
                    Some(_) => element.behaviour.trigger()?.starter()?,
                    None => element.behaviour.starter()?,
                };
                Some(Starter {
                    element: ElementIndex(position as u32),
                    trigger,
                })
            })
            .collect()
    }

    /// When the timer start event `element` is due, having fired `fired` times, the last time (or the deployment)
    /// at `after`. None when it never fires (again), or is not a timer start event.
    pub fn next_start_timer(&self, element: ElementIndex, after: Timestamp, fired: u32) -> Option<Timestamp> {
        self.elements
            .get(element.index())?
            .behaviour
            .next_start(after, fired)
    }

    /// True if the model wants `event` to be committed before anything begins that follows from it.
    pub fn is_commit_point(&self, event: &Event) -> bool {
        match event {
            Event::ElementActivated { element, .. } => self.element(*element).commit_before,
            Event::ElementCompleted { element, .. } => self.element(*element).commit_after,
            _ => false,
        }
    }

    /// The event that `element` is a part of, or `element` itself.
    pub(crate) fn event_of(&self, element: ElementIndex) -> ElementIndex {
        self.element(element).part_of.unwrap_or(element)
    }

    /// The event itself, or its parts where it has several definitions.
    pub(crate) fn sources<'a>(&'a self, event: &'a ElementIndex) -> &'a [ElementIndex] {
        match self.element(*event).parts.as_slice() {
            [] => std::slice::from_ref(event),
            parts => parts,
        }
    }

    /// The event sub-processes of the scope that `element` holds; none stands for the process itself.
    pub(crate) fn listeners(&self, element: Option<ElementIndex>) -> &[ElementIndex] {
        match element {
            Some(element) => &self.element(element).listeners,
            None => &self.listeners,
        }
    }

    /// For the start of an event sub-process, that sub-process.
    pub(crate) fn listener_of(&self, event: ElementIndex) -> Option<ElementIndex> {
        let info = self.element(event);
        let around = info.parent.filter(|_| info.kind == "startEvent")?;
        self.element(around).behaviour.is_listener().then_some(around)
    }
}
