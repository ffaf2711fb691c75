//! Which attribute and which text refers to which kind of element: one table.

use Dangling::{Refused, Tolerated};
use Place::{Attribute, Text};

/// Where a reference is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Attribute,
    Text,
}

/// What a reference to nothing means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dangling {
    /// An error.
    Refused,
    /// A warning: it cannot change a run, and modelers leave such references behind.
    Tolerated,
    /// Nothing: the target may be in another file.
    Elsewhere,
}

/// One kind of reference.
#[derive(Debug)]
pub struct Rule {
    pub place: Place,
    /// The attribute's name; the tag for a text.
    pub name: &'static str,
    /// The elements on which the attribute stands, or in which the text's element does; empty for all.
    pub holders: &'static [&'static str],
    pub kinds: Kinds,
    pub dangling: Dangling,
}

/// The elements that a reference may name.
#[derive(Debug, Clone, Copy)]
pub struct Kinds {
    /// In words, for messages.
    pub name: &'static str,
    groups: &'static [&'static [&'static str]],
}

impl Kinds {
    pub fn allow(&self, tag: &str) -> bool {
        self.groups.is_empty() || self.groups.iter().any(|group| group.contains(&tag))
    }
}

const ACTIVITY_TAGS: &[&str] = &[
    "task",
    "serviceTask",
    "userTask",
    "scriptTask",
    "sendTask",
    "receiveTask",
    "manualTask",
    "businessRuleTask",
    "subProcess",
    "adHocSubProcess",
    "transaction",
    "callActivity",
];

const EVENT_TAGS: &[&str] = &[
    "startEvent",
    "endEvent",
    "intermediateCatchEvent",
    "intermediateThrowEvent",
    "boundaryEvent",
    "implicitThrowEvent",
];

const GATEWAY_TAGS: &[&str] = &[
    "exclusiveGateway",
    "parallelGateway",
    "inclusiveGateway",
    "complexGateway",
    "eventBasedGateway",
];

const CHOREOGRAPHY_TAGS: &[&str] = &["choreographyTask", "subChoreography", "callChoreography"];

const CONVERSATION_TAGS: &[&str] = &["conversation", "subConversation", "callConversation"];

const EVENT_DEFINITION_TAGS: &[&str] = &[
    "messageEventDefinition",
    "timerEventDefinition",
    "signalEventDefinition",
    "errorEventDefinition",
    "escalationEventDefinition",
    "conditionalEventDefinition",
    "compensateEventDefinition",
    "cancelEventDefinition",
    "terminateEventDefinition",
    "linkEventDefinition",
];

const ITEM_AWARE_TAGS: &[&str] = &[
    "dataInput",
    "dataOutput",
    "inputDataItem",
    "outputDataItem",
    "dataObject",
    "dataObjectReference",
    "dataStore",
    "dataStoreReference",
    "property",
];

const FLOW_NODE: Kinds = Kinds {
    name: "a flow node",
    groups: &[ACTIVITY_TAGS, EVENT_TAGS, GATEWAY_TAGS, CHOREOGRAPHY_TAGS],
};
const ACTIVITY: Kinds = Kinds {
    name: "an activity",
    groups: &[ACTIVITY_TAGS],
};
const INTERACTION_NODE: Kinds = Kinds {
    name: "a participant, activity or event",
    groups: &[
        &["participant"],
        ACTIVITY_TAGS,
        EVENT_TAGS,
        CONVERSATION_TAGS,
        CHOREOGRAPHY_TAGS,
        GATEWAY_TAGS,
    ],
};
const EVENT_DEFINITION: Kinds = Kinds {
    name: "an event definition",
    groups: &[EVENT_DEFINITION_TAGS],
};
const ITEM_AWARE: Kinds = Kinds {
    name: "a data element",
    groups: &[ITEM_AWARE_TAGS],
};
/// The standard wants data elements; modelers draw the association to the activity itself.
const DATA_END: Kinds = Kinds {
    name: "a data element",
    groups: &[ITEM_AWARE_TAGS, ACTIVITY_TAGS],
};
const ANY: Kinds = Kinds {
    name: "an element",
    groups: &[],
};
const COLLABORATION: Kinds = Kinds {
    name: "a collaboration",
    groups: &[&[
        "collaboration",
        "choreography",
        "globalConversation",
        "globalChoreographyTask",
    ]],
};
const CONVERSATION_NODE: Kinds = Kinds {
    name: "a conversation",
    groups: &[CONVERSATION_TAGS],
};

macro_rules! one {
    ($name:literal, $tag:literal) => {
        Kinds {
            name: $name,
            groups: &[&[$tag]],
        }
    };
}

const MESSAGE: Kinds = one!("a message", "message");
const SEQUENCE_FLOW: Kinds = one!("a sequence flow", "sequenceFlow");
const ITEM_DEFINITION: Kinds = one!("an item definition", "itemDefinition");
const PARTICIPANT: Kinds = one!("a participant", "participant");
const INPUT_SET: Kinds = one!("an input set", "inputSet");
const OUTPUT_SET: Kinds = one!("an output set", "outputSet");
const DATA_INPUT: Kinds = one!("a data input", "dataInput");
const DATA_OUTPUT: Kinds = one!("a data output", "dataOutput");
const INTERFACE: Kinds = one!("an interface", "interface");
const OPERATION: Kinds = one!("an operation", "operation");
const ERROR: Kinds = one!("an error", "error");
const CORRELATION_KEY: Kinds = one!("a correlation key", "correlationKey");
const CORRELATION_PROPERTY: Kinds = one!("a correlation property", "correlationProperty");
const LINK: Kinds = one!("a link event definition", "linkEventDefinition");
const PROCESS: Kinds = one!("a process", "process");
const MESSAGE_FLOW: Kinds = one!("a message flow", "messageFlow");

const fn rule(
    place: Place,
    name: &'static str,
    holders: &'static [&'static str],
    kinds: Kinds,
    dangling: Dangling,
) -> Rule {
    Rule {
        place,
        name,
        holders,
        kinds,
        dangling,
    }
}

const FLOW: &[&str] = &["sequenceFlow"];
const MESSAGE_ENDS: &[&str] = &["messageFlow", "conversationLink"];
const ASSOCIATION: &[&str] = &["association"];
const DATA_ASSOCIATION: &[&str] = &["dataInputAssociation", "dataOutputAssociation", "dataAssociation"];
const LOOP: &[&str] = &["multiInstanceLoopCharacteristics"];

/// Every reference of the standard. The first row that fits counts.
pub const RULES: &[Rule] = &[
    // Flow.
    rule(Attribute, "sourceRef", FLOW, FLOW_NODE, Refused),
    rule(Attribute, "targetRef", FLOW, FLOW_NODE, Refused),
    rule(Attribute, "default", &[], SEQUENCE_FLOW, Refused),
    rule(Attribute, "attachedToRef", &[], ACTIVITY, Refused),
    rule(Text, "incoming", &[], SEQUENCE_FLOW, Tolerated),
    rule(Text, "outgoing", &[], SEQUENCE_FLOW, Tolerated),
    rule(Text, "flowNodeRef", &[], FLOW_NODE, Tolerated),
    rule(Attribute, "partitionElementRef", &[], ANY, Tolerated),
    // Events.
    rule(Attribute, "messageRef", &[], MESSAGE, Refused),
    rule(Attribute, "signalRef", &[], one!("a signal", "signal"), Refused),
    rule(Attribute, "errorRef", &[], ERROR, Refused),
    rule(
        Attribute,
        "escalationRef",
        &[],
        one!("an escalation", "escalation"),
        Refused,
    ),
    rule(Attribute, "activityRef", &[], ACTIVITY, Refused),
    rule(Text, "eventDefinitionRef", &[], EVENT_DEFINITION, Refused),
    rule(Text, "source", &["linkEventDefinition"], LINK, Refused),
    rule(Text, "target", &["linkEventDefinition"], LINK, Refused),
    rule(Attribute, "oneBehaviorEventRef", LOOP, EVENT_DEFINITION, Refused),
    rule(Attribute, "noneBehaviorEventRef", LOOP, EVENT_DEFINITION, Refused),
    // Calls and services.
    rule(Attribute, "calledElement", &[], ANY, Dangling::Elsewhere),
    rule(Attribute, "operationRef", &[], OPERATION, Refused),
    rule(Text, "operationRef", &[], OPERATION, Refused),
    rule(Text, "interfaceRef", &[], INTERFACE, Refused),
    rule(Text, "supportedInterfaceRef", &[], INTERFACE, Refused),
    rule(Text, "inMessageRef", &[], MESSAGE, Tolerated),
    rule(Text, "outMessageRef", &[], MESSAGE, Tolerated),
    rule(Text, "errorRef", &[], ERROR, Tolerated),
    // Data.
    rule(Attribute, "itemSubjectRef", &[], ITEM_DEFINITION, Refused),
    rule(Attribute, "itemRef", &[], ITEM_DEFINITION, Refused),
    rule(
        Attribute,
        "structureRef",
        &["signal", "error", "escalation"],
        ITEM_DEFINITION,
        Tolerated,
    ),
    rule(
        Attribute,
        "dataObjectRef",
        &[],
        one!("a data object", "dataObject"),
        Refused,
    ),
    rule(
        Attribute,
        "dataStoreRef",
        &[],
        one!("a data store", "dataStore"),
        Refused,
    ),
    rule(Text, "sourceRef", DATA_ASSOCIATION, DATA_END, Refused),
    rule(Text, "targetRef", DATA_ASSOCIATION, DATA_END, Refused),
    rule(Text, "loopDataInputRef", LOOP, ITEM_AWARE, Refused),
    rule(Text, "loopDataOutputRef", LOOP, ITEM_AWARE, Refused),
    rule(Text, "dataInputRefs", &[], DATA_INPUT, Refused),
    rule(Text, "optionalInputRefs", &[], DATA_INPUT, Refused),
    rule(Text, "whileExecutingInputRefs", &[], DATA_INPUT, Refused),
    rule(Text, "dataOutputRefs", &[], DATA_OUTPUT, Refused),
    rule(Text, "optionalOutputRefs", &[], DATA_OUTPUT, Refused),
    rule(Text, "whileExecutingOutputRefs", &[], DATA_OUTPUT, Refused),
    rule(Text, "inputSetRefs", &[], INPUT_SET, Refused),
    rule(Text, "outputSetRefs", &[], OUTPUT_SET, Refused),
    rule(Attribute, "inputDataRef", &["ioBinding"], INPUT_SET, Refused),
    rule(Attribute, "outputDataRef", &["ioBinding"], OUTPUT_SET, Refused),
    // Correlation.
    rule(Attribute, "correlationKeyRef", &[], CORRELATION_KEY, Refused),
    rule(
        Attribute,
        "correlationPropertyRef",
        &[],
        CORRELATION_PROPERTY,
        Refused,
    ),
    rule(Text, "correlationPropertyRef", &[], CORRELATION_PROPERTY, Refused),
    // Resources.
    rule(Text, "resourceRef", &[], one!("a resource", "resource"), Refused),
    rule(
        Attribute,
        "parameterRef",
        &[],
        one!("a resource parameter", "resourceParameter"),
        Refused,
    ),
    // Collaboration.
    rule(Attribute, "processRef", &[], PROCESS, Refused),
    rule(Text, "supports", &["process"], PROCESS, Tolerated),
    rule(
        Attribute,
        "definitionalCollaborationRef",
        &[],
        COLLABORATION,
        Refused,
    ),
    rule(Attribute, "sourceRef", MESSAGE_ENDS, INTERACTION_NODE, Refused),
    rule(Attribute, "targetRef", MESSAGE_ENDS, INTERACTION_NODE, Refused),
    rule(Text, "messageFlowRef", &[], MESSAGE_FLOW, Refused),
    rule(Attribute, "messageFlowRef", &[], MESSAGE_FLOW, Refused),
    rule(Text, "participantRef", &[], PARTICIPANT, Refused),
    rule(Attribute, "participantRef", &[], PARTICIPANT, Refused),
    rule(Text, "innerParticipantRef", &[], PARTICIPANT, Refused),
    rule(Text, "outerParticipantRef", &[], PARTICIPANT, Refused),
    rule(Attribute, "initiatingParticipantRef", &[], PARTICIPANT, Refused),
    rule(Text, "choreographyRef", &[], COLLABORATION, Tolerated),
    rule(
        Attribute,
        "innerConversationNodeRef",
        &[],
        CONVERSATION_NODE,
        Refused,
    ),
    rule(
        Attribute,
        "outerConversationNodeRef",
        &[],
        CONVERSATION_NODE,
        Refused,
    ),
    rule(Attribute, "innerMessageFlowRef", &[], MESSAGE_FLOW, Refused),
    rule(Attribute, "outerMessageFlowRef", &[], MESSAGE_FLOW, Refused),
    // Artifacts.
    rule(Attribute, "sourceRef", ASSOCIATION, ANY, Refused),
    rule(Attribute, "targetRef", ASSOCIATION, ANY, Refused),
    rule(
        Attribute,
        "categoryValueRef",
        &[],
        one!("a category value", "categoryValue"),
        Tolerated,
    ),
];

/// The rule for an attribute `name` on `holder`, or for a text in an element `name` inside `holder`.
pub fn find(place: Place, name: &str, holder: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| {
        rule.place == place
            && rule.name == name
            && (rule.holders.is_empty() || rule.holders.contains(&holder))
    })
}

/// The references that an element cannot be without.
pub fn mandatory(tag: &str) -> &'static [&'static str] {
    match tag {
        "sequenceFlow" | "messageFlow" | "association" => &["sourceRef", "targetRef"],
        "boundaryEvent" => &["attachedToRef"],
        _ => &[],
    }
}

/// True for elements that cannot be without an id.
pub fn needs_id(tag: &str) -> bool {
    tag == "process" || is_flow_node(tag)
}

/// True for the nodes that sequence flows connect.
pub fn is_flow_node(tag: &str) -> bool {
    FLOW_NODE.allow(tag)
}
