//! Faults that no honest part has: each breaks one law, to prove that its checker can fail.

/// What is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// The store says that new instances are there, and forgets every other one.
    ForgetsStarts,
    /// The store answers before it writes.
    AnswersFirst,
    /// Another writer repeats what an owner wrote, past the fence of the revision.
    SecondWriter,
    /// Another writer turns ended instances back.
    Undead,
    /// The store puts the first of two messages of a line behind the second.
    Swaps,
    /// The store says that interruptions are marked, and forgets the marks.
    LosesMarks,
    /// The store says that audit entries are written, and forgets them.
    LosesAudit,
    /// A handler leaves a task behind.
    Orphan,
}
