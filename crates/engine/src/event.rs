//! What happened to an instance: the one list that is its state of record, its log and its audit.
//!
//! Elements and flows appear by index, keys as small differences to the first key of the batch. New variants and new
//! optional fields take new numbers; a number is never used again.

use minicbor::{Decode, Encode};
use tidegate_model::effect::Binding;
use tidegate_model::{
    Cancellation, Cause, DefinitionKey, ElementIndex, ElementInstanceKey, Hold, IncidentKey, InstanceKey,
    Interruption, Json, MessageKey, TaskDetails, Timestamp, Variables,
};

use crate::codec::Base;
use crate::definition::FlowIndex;
use crate::timer::Repeat;

/// One thing that happened to an instance.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
#[cbor(flat, context_bound = "Base")]
pub enum Event {
    /// Header of the events of one command: when and why they happened. Changes nothing and is not counted.
    #[n(0)]
    Caused {
        /// The time the command was decided at.
        #[n(0)]
        time: Timestamp,
        /// Who or what wanted it.
        #[n(1)]
        cause: Cause,
    },
    /// The instance began.
    #[n(1)]
    InstanceStarted {
        /// The start event; none for a process that has none.
        #[n(0)]
        element: Option<ElementIndex>,
        /// Start variables.
        #[n(1)]
        variables: Variables,
    },
    /// The instance reached its end.
    #[n(2)]
    InstanceCompleted,
    /// The instance was cancelled.
    #[n(3)]
    InstanceCancelled,
    /// The instance ended by an error that nothing caught.
    #[n(4)]
    InstanceFaulted {
        /// The element that threw it.
        #[n(0)]
        element: ElementIndex,
        /// The error code.
        #[n(1)]
        code: String,
        /// What went wrong.
        #[n(2)]
        message: String,
    },
    /// A token became an element instance.
    #[n(5)]
    ElementActivated {
        /// Its key.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// The scope around it.
        #[cbor(n(2), with = "crate::codec::key")]
        parent: ElementInstanceKey,
        /// The flow whose token it took; none where a scope or an event made it.
        #[n(3)]
        flow: Option<FlowIndex>,
    },
    /// An element instance came to its end.
    #[n(6)]
    ElementCompleted {
        /// Its key.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
    },
    /// An element instance was ended from outside.
    #[n(7)]
    ElementTerminated {
        /// Its key.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
    },
    /// A token was put on a flow.
    #[n(8)]
    SequenceFlowTaken {
        /// The scope it is in.
        #[cbor(n(0), with = "crate::codec::key")]
        scope: ElementInstanceKey,
        /// The flow.
        #[n(1)]
        flow: FlowIndex,
    },
    /// The tokens on the flows of a scope were removed.
    #[n(9)]
    TokensRemoved {
        /// The scope.
        #[cbor(n(0), with = "crate::codec::key")]
        scope: ElementInstanceKey,
    },
    /// Variables were set in a scope.
    #[n(10)]
    VariablesSet {
        /// The scope or element instance that holds them.
        #[cbor(n(0), with = "crate::codec::key")]
        scope: ElementInstanceKey,
        /// Their new values.
        #[n(1)]
        variables: Variables,
    },
    /// The results of an element instance went to where variables of these names are, else to the instance.
    #[n(11)]
    ResultsMerged {
        /// The element instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
    },
    /// An activity asked for a piece of work.
    #[n(12)]
    JobCreated {
        /// The job, which is the element instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// Tries it has.
        #[n(2)]
        retries: u32,
        /// The job type, where the model computes it.
        #[n(3)]
        job_type: Option<String>,
    },
    /// A job succeeded.
    #[n(13)]
    JobCompleted {
        /// The job.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// Its results.
        #[n(2)]
        variables: Variables,
    },
    /// A job failed technically.
    #[n(14)]
    JobFailed {
        /// The job.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// Tries left.
        #[n(2)]
        retries: u32,
        /// When it may be tried again.
        #[n(3)]
        retry_at: Option<Timestamp>,
        /// What went wrong.
        #[n(4)]
        message: String,
    },
    /// A job that an incident had stopped is offered again.
    #[n(15)]
    JobRetried {
        /// The job.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// Tries it has now.
        #[n(2)]
        retries: u32,
    },
    /// A script that the engine runs itself gave its result.
    #[n(16)]
    ScriptEvaluated {
        /// The script task's instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// The result under its name.
        #[n(2)]
        variables: Variables,
    },
    /// A user task was opened.
    #[n(17)]
    UserTaskCreated {
        /// The task, which is the element instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// Who has it.
        #[n(2)]
        assignee: Option<String>,
        /// Groups that may take it.
        #[n(3)]
        candidate_groups: Vec<String>,
        /// What else the model says of it; none where that is nothing.
        #[n(4)]
        details: Option<Box<TaskDetails>>,
    },
    /// A user task was taken or given back.
    #[n(18)]
    UserTaskAssigned {
        /// The task.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// Who has it now.
        #[n(2)]
        assignee: Option<String>,
    },
    /// A user task was done.
    #[n(19)]
    UserTaskCompleted {
        /// The task.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// The results.
        #[n(2)]
        variables: Variables,
    },
    /// A timer was armed.
    #[n(20)]
    TimerArmed {
        /// The element instance that waits.
        #[cbor(n(0), with = "crate::codec::key")]
        owner: ElementInstanceKey,
        /// The timer event.
        #[n(1)]
        element: ElementIndex,
        /// When it is due.
        #[n(2)]
        due_at: Timestamp,
        /// How it goes on after that.
        #[n(3)]
        repeat: Option<Repeat>,
    },
    /// A timer fired.
    #[n(21)]
    TimerFired {
        /// The element instance that waited.
        #[cbor(n(0), with = "crate::codec::key")]
        owner: ElementInstanceKey,
        /// The timer event.
        #[n(1)]
        element: ElementIndex,
        /// The instance of the event that goes on.
        #[cbor(n(2), with = "crate::codec::key")]
        into: ElementInstanceKey,
        /// The time it was due.
        #[n(3)]
        due_at: Timestamp,
        /// Later turns that had passed too and were folded into this one.
        #[n(4)]
        missed: u32,
        /// When it is due again.
        #[n(5)]
        next: Option<Timestamp>,
    },
    /// A message is waited for.
    #[n(22)]
    MessageSubscribed {
        /// The element instance that waits.
        #[cbor(n(0), with = "crate::codec::key")]
        owner: ElementInstanceKey,
        /// The message event or receive task.
        #[n(1)]
        element: ElementIndex,
        /// The message's name, where the model computes it.
        #[n(2)]
        name: Option<String>,
        /// The correlation key.
        #[n(3)]
        correlation_key: String,
    },
    /// A message came.
    #[n(23)]
    MessageCorrelated {
        /// The element instance that waited.
        #[cbor(n(0), with = "crate::codec::key")]
        owner: ElementInstanceKey,
        /// The message event or receive task.
        #[n(1)]
        element: ElementIndex,
        /// The instance of the event that goes on.
        #[cbor(n(2), with = "crate::codec::key")]
        into: ElementInstanceKey,
        /// The message.
        #[cbor(n(3), with = "crate::codec::key")]
        message: MessageKey,
        /// Its payload.
        #[n(4)]
        variables: Variables,
    },
    /// A BPMN error was thrown.
    #[n(24)]
    ErrorThrown {
        /// The element instance that threw it.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// The error code.
        #[n(2)]
        code: String,
        /// What went wrong.
        #[n(3)]
        message: String,
    },
    /// A BPMN error was caught.
    #[n(25)]
    ErrorCaught {
        /// The instance of the event that caught it.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// That event.
        #[n(1)]
        element: ElementIndex,
        /// The error code.
        #[n(2)]
        code: String,
        /// Variables for the scope that caught it.
        #[n(3)]
        variables: Variables,
    },
    /// A problem stopped something until a person acts.
    #[n(26)]
    IncidentRaised {
        /// Its key.
        #[cbor(n(0), with = "crate::codec::key")]
        incident: IncidentKey,
        /// The element instance it stopped; the root scope when it stopped tokens on flows.
        #[cbor(n(1), with = "crate::codec::key")]
        element_instance: ElementInstanceKey,
        /// The element.
        #[n(2)]
        element: ElementIndex,
        /// What is tried again when it is resolved.
        #[n(3)]
        resume: Resume,
        /// Stable code.
        #[n(4)]
        code: String,
        /// What happened, with what to do.
        #[n(5)]
        message: String,
    },
    /// The problem is gone: resolved, or its element was ended.
    #[n(27)]
    IncidentResolved {
        /// Its key.
        #[cbor(n(0), with = "crate::codec::key")]
        incident: IncidentKey,
    },
    /// The runtime cut the cycle.
    #[n(28)]
    WorkflowInterrupted {
        /// The record of the cut.
        #[n(0)]
        record: Box<Interruption>,
    },
    /// The instance was found executing after a crash.
    #[n(29)]
    CrashRecovered {
        /// The generation that recovered it.
        #[n(0)]
        generation: String,
        /// How many times in a row it was found so.
        #[n(1)]
        attempt: u32,
    },
    /// The beginning of the journal was removed: a snapshot covers it.
    #[n(90)]
    HistoryTrimmed {
        /// The place of the first event that is still there.
        #[n(0)]
        first_kept: u64,
    },
    /// An operator suspended the instance.
    #[n(30)]
    InstanceHeld {
        /// The hold; none in journals of the first days.
        #[n(0)]
        hold: Option<Box<Hold>>,
    },
    /// An operator let the instance go.
    #[n(31)]
    InstanceReleased {
        /// Whose holds ended.
        #[n(0)]
        #[cbor(default)]
        origins: Vec<InstanceKey>,
        /// By how much timers are put off, in milliseconds: their clock stood still.
        #[n(1)]
        shift_ms: Option<i64>,
    },
    /// The work of an activity was under way when its cycle was cut or the process went away, and the model does not
    /// have it simply done again.
    #[n(32)]
    ActivityInterrupted {
        /// The job, which is the element instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
    },
    /// A message was sent.
    #[n(40)]
    MessagePublished {
        /// The element instance that sent it.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// The message's name.
        #[n(2)]
        name: String,
        /// The correlation key.
        #[n(3)]
        correlation_key: String,
        /// Its payload.
        #[n(4)]
        variables: Variables,
        /// How long it may wait for a taker, in milliseconds.
        #[n(5)]
        ttl_ms: Option<i64>,
        /// The id by which a second sending of it is known.
        #[n(6)]
        message_id: Option<String>,
    },
    /// A signal was thrown.
    #[n(41)]
    SignalThrown {
        /// The element instance that threw it.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// The signal's name.
        #[n(2)]
        name: String,
        /// Its payload.
        #[n(3)]
        variables: Variables,
    },
    /// A signal is waited for.
    #[n(42)]
    SignalSubscribed {
        /// The element instance that waits; the instance itself for an event sub-process at the top.
        #[cbor(n(0), with = "crate::codec::key")]
        owner: ElementInstanceKey,
        /// The signal event.
        #[n(1)]
        element: ElementIndex,
        /// The signal's name, where the model computes it.
        #[n(2)]
        name: Option<String>,
    },
    /// A signal came.
    #[n(43)]
    SignalCaught {
        /// The element instance that waited.
        #[cbor(n(0), with = "crate::codec::key")]
        owner: ElementInstanceKey,
        /// The signal event.
        #[n(1)]
        element: ElementIndex,
        /// The instance of the event that goes on; the root scope while it waits for others too.
        #[cbor(n(2), with = "crate::codec::key")]
        into: ElementInstanceKey,
        /// Its payload.
        #[n(3)]
        variables: Variables,
    },
    /// An escalation was thrown.
    #[n(44)]
    EscalationThrown {
        /// The element instance that threw it.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// The escalation code.
        #[n(2)]
        code: String,
    },
    /// An escalation was caught.
    #[n(45)]
    EscalationCaught {
        /// The instance of the event that caught it.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// That event.
        #[n(1)]
        element: ElementIndex,
        /// The escalation code.
        #[n(2)]
        code: String,
        /// Variables for the scope that caught it.
        #[n(3)]
        variables: Variables,
    },
    /// An escalation found nothing that catches it, and has no further consequence here; a caller may catch it.
    #[n(46)]
    EscalationUncaught {
        /// The element instance that threw it.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// The escalation code.
        #[n(2)]
        code: String,
        /// Variables for the scope that catches it.
        #[n(3)]
        variables: Variables,
    },
    /// A condition is waited for.
    #[n(47)]
    ConditionAwaited {
        /// The element instance that waits; the instance itself for an event sub-process at the top.
        #[cbor(n(0), with = "crate::codec::key")]
        owner: ElementInstanceKey,
        /// The conditional event.
        #[n(1)]
        element: ElementIndex,
    },
    /// A condition became true.
    #[n(48)]
    ConditionMet {
        /// The element instance that waited.
        #[cbor(n(0), with = "crate::codec::key")]
        owner: ElementInstanceKey,
        /// The conditional event.
        #[n(1)]
        element: ElementIndex,
        /// The instance of the event that goes on; the root scope while it waits for others too.
        #[cbor(n(2), with = "crate::codec::key")]
        into: ElementInstanceKey,
    },
    /// A condition that had been true no longer is, so that it can become true again.
    #[n(49)]
    ConditionLapsed {
        /// The element instance that waits.
        #[cbor(n(0), with = "crate::codec::key")]
        owner: ElementInstanceKey,
        /// The conditional event.
        #[n(1)]
        element: ElementIndex,
    },
    /// An event is no longer waited for, although what waited for it lives on.
    #[n(50)]
    WaitsClosed {
        /// The element instance that waited.
        #[cbor(n(0), with = "crate::codec::key")]
        owner: ElementInstanceKey,
        /// The event.
        #[n(1)]
        element: ElementIndex,
    },
    /// A complex gateway has let tokens through and waits for the rest of those that come to it.
    #[n(51)]
    GatewayOpened {
        /// The gateway's instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The gateway.
        #[n(1)]
        element: ElementIndex,
    },
    /// A complex gateway took the rest of its tokens and begins again.
    #[n(52)]
    GatewayReset {
        /// The gateway's instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The gateway.
        #[n(1)]
        element: ElementIndex,
    },
    /// A repeated activity began.
    #[n(60)]
    LoopStarted {
        /// The whole of it.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// How many turns there are at most; none for as many as the condition wants.
        #[n(2)]
        total: Option<u32>,
        /// The items of the collection.
        #[n(3)]
        items: Option<Vec<Json>>,
    },
    /// A turn of a repeated activity was activated.
    #[n(61)]
    LoopTurnActivated {
        /// Its key.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// The whole of the activity.
        #[cbor(n(2), with = "crate::codec::key")]
        parent: ElementInstanceKey,
    },
    /// A turn gave its part of the output collection.
    #[n(62)]
    LoopOutputCollected {
        /// The turn.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// Its value.
        #[n(2)]
        value: Json,
    },
    /// No more turns of a repeated activity follow.
    #[n(63)]
    LoopEnded {
        /// The whole of it.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
    },
    /// An instance of another process was asked for.
    #[n(64)]
    ChildCalled {
        /// The call activity's instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// The child's key.
        #[cbor(n(2), with = "crate::codec::key")]
        child: InstanceKey,
        /// The process.
        #[n(3)]
        process_id: String,
        /// Which version of it.
        #[n(4)]
        binding: Binding,
        /// The variables it begins with.
        #[n(5)]
        variables: Variables,
        /// Its business key.
        #[n(6)]
        business_key: Option<String>,
    },
    /// The called instance ended.
    #[n(65)]
    ChildEnded {
        /// The call activity's instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// The child's key.
        #[cbor(n(2), with = "crate::codec::key")]
        child: InstanceKey,
        /// How it ended.
        #[n(3)]
        outcome: ChildOutcome,
        /// What comes back from it.
        #[n(4)]
        variables: Variables,
    },
    /// A completed activity is compensated.
    #[n(66)]
    CompensationActivated {
        /// The key of the handler's instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The handler.
        #[n(1)]
        element: ElementIndex,
        /// The event that asked for it.
        #[cbor(n(2), with = "crate::codec::key")]
        parent: ElementInstanceKey,
        /// The scope in which the activity completed.
        #[cbor(n(3), with = "crate::codec::key")]
        scope: ElementInstanceKey,
        /// Its place in the order of completion.
        #[n(4)]
        order: u64,
    },
    /// What completed in a scope has been compensated, or can no longer be, and the scope itself neither.
    #[n(67)]
    CompensationEnded {
        /// The scope in which the activity completed.
        #[cbor(n(0), with = "crate::codec::key")]
        scope: ElementInstanceKey,
        /// Its place in the order of completion; none for everything in the scope.
        #[n(1)]
        order: Option<u64>,
    },
    /// A transaction was cancelled.
    #[n(68)]
    TransactionCancelled {
        /// The transaction's instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// The instance of the boundary event that goes on.
        #[cbor(n(2), with = "crate::codec::key")]
        into: ElementInstanceKey,
    },
    /// The end of the instance was asked for: nothing of it goes on.
    #[n(80)]
    CancelRequested {
        /// Who asked, and how patient they are.
        #[n(0)]
        cancellation: Box<Cancellation>,
    },
    /// A called instance was asked to end, because its caller is being cancelled.
    #[n(81)]
    ChildCancelRequested {
        /// The call activity's instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// The child's key.
        #[cbor(n(2), with = "crate::codec::key")]
        child: InstanceKey,
    },
    /// A handler did not stop in its time and is no longer waited for; its result will not be taken.
    #[n(82)]
    ActivityAbandoned {
        /// Its job.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
    },
    /// An activity of an ad-hoc sub-process was begun.
    #[n(69)]
    AdHocProgressed {
        /// The sub-process's instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
        /// How many of its activities have begun.
        #[n(2)]
        begun: u32,
    },
    /// A cancelled transaction is about to end an element instance: what completed inside it will be compensated.
    #[n(70)]
    CompensationKept {
        /// The element instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
    },
    /// An event asked for compensation and does not wait for it: its tokens leave, and it stays for the handlers.
    #[n(72)]
    CompensationDetached {
        /// The event's instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
    },
    /// No more activities of an ad-hoc sub-process begin.
    #[n(71)]
    AdHocClosed {
        /// The sub-process's instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
    },
    /// The instance changed to another version of its process. Elements and flows of the events behind it are those of
    /// that version.
    #[n(94)]
    Migrated {
        /// The definition it had.
        #[n(0)]
        from: DefinitionKey,
        /// The definition that it has now.
        #[n(1)]
        to: DefinitionKey,
        /// Each element that something of the instance stands on, and what it is now, in order.
        #[n(2)]
        elements: Vec<(ElementIndex, ElementIndex)>,
        /// Likewise each flow.
        #[n(3)]
        flows: Vec<(FlowIndex, FlowIndex)>,
    },
    /// An operator took tokens off a flow.
    #[n(95)]
    TokensTaken {
        /// The scope.
        #[cbor(n(0), with = "crate::codec::key")]
        scope: ElementInstanceKey,
        /// The flow.
        #[n(1)]
        flow: FlowIndex,
        /// How many.
        #[n(2)]
        count: u32,
    },
    /// An operator had something begin inside a sub-process, which therefore begins without its start event.
    #[n(96)]
    ScopeEntered {
        /// The sub-process's instance.
        #[cbor(n(0), with = "crate::codec::key")]
        key: ElementInstanceKey,
        /// The element.
        #[n(1)]
        element: ElementIndex,
    },
}

/// What an incident stopped, and so what is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Resume {
    /// The activation of the element instance.
    #[n(0)]
    Activation,
    /// Its completion.
    #[n(1)]
    Completion,
    /// Its job.
    #[n(2)]
    Job,
    /// The tokens that stand on flows.
    #[n(3)]
    Tokens,
    /// What a scope listens for: the starts of its event sub-processes.
    #[n(10)]
    Listeners,
    /// What comes next inside the element instance: a turn, a handler, an activity.
    #[n(60)]
    Next,
    /// The call of another process.
    #[n(61)]
    Call,
    /// Nothing: it says only what happened.
    #[n(80)]
    Nothing,
}

/// How a called instance ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum ChildOutcome {
    /// It completed.
    #[n(0)]
    Completed,
    /// It ended by an error.
    #[n(1)]
    Faulted,
    /// An operator cancelled it.
    #[n(2)]
    Cancelled,
    /// It could not be started.
    #[n(3)]
    NotStarted,
}

impl ChildOutcome {
    /// The word for the API.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Faulted => "faulted",
            Self::Cancelled => "cancelled",
            Self::NotStarted => "notStarted",
        }
    }
}
