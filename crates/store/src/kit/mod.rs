//! The conformance kit: what a store promises, one test a promise. Every store runs it by one line:
//!
//! ```ignore
//! tidegate_store::conformance!(memory, || Box::new(InMemory::new()));
//! ```
//!
//! where the expression makes a fresh [`Place`]. Time is an argument everywhere; no test sleeps.

pub mod commits;
pub mod definitions;
pub mod forget;
pub mod instances;
pub mod jobs;
pub mod messages;
pub mod order;
pub mod people;
pub mod queue;
pub mod timers;
pub mod values;

mod rows;

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use tidegate_model::Timestamp;

use crate::Store;
use crate::commit::{Batch, Commit, CommitError, CommitResult, Expect, Outcome, Refusal, Write};
use crate::error::ErrorKind;

/// A place that a store lives in: opened again after a close, it holds the same data.
pub trait Place {
    /// Opens the store. Only one is open at a time.
    fn open(&self) -> Arc<dyn Store>;
}

/// Makes a fresh place.
pub type Make<'a> = &'a dyn Fn() -> Box<dyn Place>;

/// Writes a `#[test]` for every test of the kit into a module of this name, over fresh places.
#[macro_export]
macro_rules! conformance {
    ($module:ident, $make:expr) => {
        $crate::conformance!(@each [tests $module, $make]);
    };
    (@each [$($then:tt)*]) => {
        $crate::conformance! { @$($then)*;
            commits::a_refused_commit_leaves_nothing
            commits::a_refused_commit_spares_its_neighbours
            commits::a_failed_commit_spares_its_neighbours
            commits::a_batch_sees_its_own_earlier_commits
            commits::an_unmet_expectation_names_itself
            commits::a_commit_of_several_instances_is_a_unit
            commits::activation_fences_earlier_epochs
            commits::the_highest_key_is_remembered
            commits::told_commits_survive
            commits::a_closed_store_refuses_batches
            order::batches_keep_their_order
            order::outcomes_are_told_in_order
            order::done_is_called_exactly_once
            order::a_done_may_submit_again
            order::a_done_may_close_the_store
            order::reads_see_told_commits
            order::one_of_many_writers_wins_each_revision
            order::a_finish_that_races_a_mark_is_never_undone
            instances::an_instance_changes_its_definition
            instances::a_stale_revision_is_refused
            instances::a_second_creation_is_refused
            instances::a_commit_may_create_and_update
            instances::states_of_any_size_come_back
            instances::load_gives_the_journal_after_the_state
            instances::recoverable_lists_what_was_cut
            instances::counts_follow_every_change
            instances::filters_find_their_instances
            instances::paging_is_stable_while_rows_come_and_go
            instances::the_journal_is_read_in_pages
            messages::a_message_finds_its_subscription
            messages::a_message_is_taken_once_for_each_process_id
            messages::a_signal_goes_to_all_who_wait
            messages::the_oldest_subscription_takes_the_message
            messages::a_subscription_takes_buffered_messages_oldest_first
            messages::a_lasting_subscription_takes_every_message
            messages::a_message_waits_until_it_expires
            messages::a_message_with_a_taker_is_not_buffered
            messages::tenants_names_and_keys_are_apart
            messages::a_replaced_subscription_is_gone
            messages::a_bad_payload_fails_its_own_commit
            messages::deliveries_stand_in_the_queue
            messages::a_buffered_message_keeps_its_sender
            jobs::leases_go_to_the_oldest_free_jobs
            jobs::excepted_processes_keep_their_jobs
            jobs::a_lease_expires
            jobs::a_stale_token_is_refused
            jobs::a_job_waits_for_its_time
            jobs::a_reported_job_is_not_offered
            jobs::a_withheld_job_is_not_offered
            jobs::a_job_can_be_replaced_and_closed
            queue::stimuli_keep_the_order_of_acceptance
            queue::stimulus_keys_are_never_reused
            queue::a_stimulus_is_consumed_once
            queue::failed_attempts_are_counted
            queue::a_dead_letter_is_replayed_once
            queue::dead_letters_are_listed_newest_first
            messages::the_life_of_messages_can_be_extended
            timers::timers_come_in_order
            timers::a_timer_is_replaced_by_its_like
            timers::equal_due_times_are_paged
            timers::a_timer_fires_as_it_is_armed
            values::a_value_is_set_once
            values::a_value_expires
            definitions::versions_are_never_reused
            definitions::deleted_definitions_are_found_but_not_listed
            definitions::the_latest_versions_can_be_listed
            definitions::resources_come_back
            forget::a_live_or_unknown_instance_keeps_a_forget_from_happening
            forget::a_caller_is_not_forgotten_before_whom_it_called
            forget::nothing_of_a_forgotten_instance_is_left
            forget::a_forgotten_key_stays_fenced_until_its_time
            forget::a_long_journal_goes_in_slices
            forget::a_kept_journal_stays_until_it_is_forgotten_too
            forget::only_what_a_state_covers_is_trimmed
            forget::what_has_ended_is_listed_by_its_end
            forget::the_end_beyond_a_count_is_found
            forget::processes_with_an_end_are_listed
            forget::operations_keep_an_outcome_for_each_instance
            forget::a_list_goes_on_while_instances_are_forgotten
            people::user_tasks_are_listed_and_closed
            people::incidents_are_listed_and_closed
            people::audit_entries_stay_in_order
        }
    };
    (@tests $module:ident, $make:expr; $($group:ident :: $name:ident)+) => {
        mod $module {
            use super::*;
            $(
                #[test]
                fn $name() {
                    $crate::kit::$group::$name(&|| $make());
                }
            )+
        }
    };
    (@names; $($group:ident :: $name:ident)+) => {
        &[$(stringify!($name)),+]
    };
}

/// The names of the kit's tests.
pub const NAMES: &[&str] = conformance!(@each [names]);

/// No store needs so long for one batch; a lost `done` fails the test instead of hanging it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A place with its open, activated store.
struct Subject {
    place: Box<dyn Place>,
    store: Arc<dyn Store>,
    epoch: u64,
    key_high: u64,
}

impl Subject {
    fn new(make: Make<'_>) -> Self {
        let place = make();
        let store = place.open();
        let activation = store.activate().expect("a fresh store can be activated");
        Self {
            place,
            store,
            epoch: activation.epoch,
            key_high: activation.key_high,
        }
    }

    /// Closes the store and opens it again, as the next process would.
    fn reopen(self) -> Self {
        let Self { place, store, .. } = self;
        store.close();
        drop(store);
        let store = place.open();
        let activation = store.activate().expect("a reopened store can be activated");
        Self {
            place,
            store,
            epoch: activation.epoch,
            key_high: activation.key_high,
        }
    }

    fn submit(&self, commits: Vec<Commit>) -> mpsc::Receiver<Vec<CommitResult>> {
        submit_to(&*self.store, self.epoch, commits)
    }

    fn batch(&self, commits: Vec<Commit>) -> Vec<CommitResult> {
        let count = commits.len();
        let results = self
            .submit(commits)
            .recv_timeout(PATIENCE)
            .expect("an outcome is told");
        assert_eq!(results.len(), count, "one outcome for each commit");
        results
    }

    fn commit(&self, expect: Vec<Expect>, writes: Vec<Write>) -> CommitResult {
        self.batch(vec![Commit { expect, writes }]).remove(0)
    }

    /// Commits writes that nothing can refuse.
    fn write(&self, writes: Vec<Write>) -> Outcome {
        self.commit(vec![], writes).expect("the commit succeeds")
    }

    fn refusal(&self, expect: Vec<Expect>, writes: Vec<Write>) -> Refusal {
        refusal_of(self.commit(expect, writes))
    }
}

fn submit_to(store: &dyn Store, epoch: u64, commits: Vec<Commit>) -> mpsc::Receiver<Vec<CommitResult>> {
    let (tell, told) = mpsc::channel();
    let done = Box::new(move |results| {
        let _ = tell.send(results);
    });
    store.submit(Batch {
        epoch,
        key_high: 0,
        commits,
        done,
    });
    told
}

fn refusal_of(result: CommitResult) -> Refusal {
    match result {
        Err(CommitError::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, found {other:?}"),
    }
}

fn failure_of(result: CommitResult) -> ErrorKind {
    match result {
        Err(CommitError::Failed {
            error,
            may_have_happened: false,
        }) => error.kind(),
        other => panic!("expected a failure that left nothing, found {other:?}"),
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(ms)
}
