//! What a runtime counts, for those who watch it. Every name and label is fixed: nothing from outside becomes one.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::runtime::Runtime;

/// One number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub help: &'static str,
    /// Whether it only grows, from the activation of this generation on.
    pub kind: FigureKind,
    /// Which of several with this name it is: a label and its value.
    pub label: Option<(&'static str, &'static str)>,
    /// The number.
    pub value: u64,
}

/// How a figure moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureKind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
}

impl FigureKind {
    /// The word of the exposition format.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

impl Runtime {
    /// What has been counted. Figures of one name stand together. Reads memory only.
    pub fn figures(&self) -> Vec<Figure> {
        use FigureKind::{Counter, Gauge};
        let shared = self.shared();
        let counters = &shared.counters;
        let figure = |name, help, kind, label, value| Figure {
            name,
            help,
            kind,
            label,
            value,
        };
        let count = |name, help, label, counter: &AtomicU64| {
            figure(name, help, Counter, label, counter.load(Ordering::Relaxed))
        };
        let (recovered, spilled) = (
            "Instances that recovery brought back, by what had stopped them.",
            "Interruptions that no commit could hold, written to the spill file or taken up from it.",
        );
        let (parts, waiting) = (
            self.partial_pauses().len() as u64,
            shared.recovering.load().map_or(0, |(done, all)| all - done),
        );
        let by = |cause| Some(("cause", cause));
        let stage = |stage| Some(("stage", stage));
        vec![
            count(
                "tidegate_accepted_for_later_total",
                "Stimuli that a closed gate, or older ones before them, kept from being executed at once.",
                None,
                &counters.accepted_for_later,
            ),
            count(
                "tidegate_offers_refused_total",
                "Offers of sources that had said they were paused, refused at the gate.",
                None,
                &counters.offers_refused,
            ),
            count(
                "tidegate_stimuli_refused_total",
                "Queued stimuli that could never be executed.",
                None,
                &counters.stimuli_refused,
            ),
            count(
                "tidegate_dead_letters_total",
                "Stimuli that failed again and again and were put aside.",
                None,
                &counters.dead_letters,
            ),
            count(
                "tidegate_late_outcomes_refused_total",
                "Results of activities that came after their cycle was over.",
                None,
                &counters.late_outcomes_refused,
            ),
            count(
                "tidegate_quarantined_total",
                "Activities that became incidents because they panicked or were under way at crash after crash.",
                None,
                &counters.quarantined,
            ),
            count(
                "tidegate_starts_skipped_total",
                "Starts that were refused, or cancelled, since their process had as many instances as it may.",
                None,
                &counters.starts_skipped,
            ),
            count(
                "tidegate_instances_forgotten_total",
                "Finished instances that were forgotten, by hand or by retention.",
                None,
                &counters.instances_forgotten,
            ),
            count(
                "tidegate_recovered_total",
                recovered,
                by("crash"),
                &counters.crash_recovered,
            ),
            count(
                "tidegate_recovered_total",
                recovered,
                by("interruption"),
                &counters.interrupted_recovered,
            ),
            figure(
                "tidegate_recovery_waiting",
                "Instances that recovery has still to look at.",
                Gauge,
                None,
                waiting,
            ),
            count(
                "tidegate_spilled_total",
                spilled,
                stage("written"),
                &counters.spilled,
            ),
            count(
                "tidegate_spilled_total",
                spilled,
                stage("taken-up"),
                &counters.spilled_taken_up,
            ),
            figure(
                "tidegate_paused_parts",
                "Definitions and tenants that are paused on their own.",
                Gauge,
                None,
                parts,
            ),
            count(
                "tidegate_timers_late_total",
                "Timers that fired late.",
                None,
                &counters.timers_late,
            ),
            count(
                "tidegate_messages_expired_total",
                "Messages that found no taker in their time.",
                None,
                &counters.messages_expired,
            ),
            count(
                "tidegate_commits_failed_total",
                "Batches of commits that the store failed.",
                None,
                &counters.commits_failed,
            ),
            count(
                "tidegate_audit_lost_total",
                "Audit entries that are in the log only.",
                None,
                &counters.audit_lost,
            ),
        ]
    }
}

/// How far recovery is: both numbers in one word, so that they fit together.
#[derive(Debug, Default)]
pub(crate) struct Recovering {
    /// The number done in the upper half, the number of all in the lower; zero where recovery does not run.
    word: AtomicU64,
}

impl Recovering {
    const HALF: u32 = 32;

    pub(crate) fn store(&self, done: u64, all: u64) {
        // More than four thousand million are shown as that many.
        let most = u64::from(u32::MAX);
        let word = (done.min(most) << Self::HALF) | all.max(done).min(most);
        self.word.store(word, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.word.store(0, Ordering::Relaxed);
    }

    /// How many are done, and of how many; none where there is nothing to recover.
    pub(crate) fn load(&self) -> Option<(u64, u64)> {
        let word = self.word.load(Ordering::Relaxed);
        (word != 0).then_some((word >> Self::HALF, word & u64::from(u32::MAX)))
    }
}
