//! Jobs and leases.

use std::sync::Arc;

use tidegate_model::ElementInstanceKey;

use super::rows::*;
use super::{Make, Subject, at};
use crate::commit::{Expect, Outcome, Refusal, Write};
use crate::row::JobState;

fn keys(outcome: &Outcome) -> Vec<u64> {
    outcome.leased.iter().map(|row| row.key.get()).collect()
}

fn leased_with(key: u64, token: &str) -> Vec<Expect> {
    vec![Expect::Lease {
        job: ElementInstanceKey(key),
        token: token.to_owned(),
    }]
}

/// The oldest free jobs of the type and tenant, up to the limit, each to one worker.
pub fn leases_go_to_the_oldest_free_jobs(make: Make<'_>) {
    let mut subject = Subject::new(make);
    let mut others = [job(1), job(2)];
    others[0].job_type = Arc::from("shipping");
    others[1].tenant = Arc::from("acme");
    subject.write(others.map(open_job).to_vec());
    subject.write([14, 11, 13, 12].map(|key| open_job(job(key))).to_vec());
    let outcome = subject.write(vec![lease(2, "t-1", 10)]);
    assert_eq!(keys(&outcome), [11, 12]);
    let mut expected = job(11);
    expected.state = JobState::Leased;
    expected.worker = Some("worker-1".to_owned());
    expected.lease_token = Some("t-1".to_owned());
    expected.lease_until = Some(at(110));
    assert_eq!(outcome.leased[0], expected);
    subject = subject.reopen();
    assert_eq!(subject.store.job(ElementInstanceKey(11)).unwrap(), Some(expected));
    assert_eq!(keys(&subject.write(vec![lease(10, "t-2", 10)])), [13, 14]);
    assert_eq!(keys(&subject.write(vec![lease(10, "t-3", 10)])), [] as [u64; 0]);
    assert_eq!(keys(&subject.write(vec![lease(0, "t-4", 500)])), [] as [u64; 0]);
}

/// Jobs of excepted processes stay where they are, and others come in their place.
pub fn excepted_processes_keep_their_jobs(make: Make<'_>) {
    let subject = Subject::new(make);
    let mut jobs = [job(11), job(12), job(13), job(14)];
    for held in [0, 2] {
        jobs[held].process_id = Arc::from("held");
    }
    subject.write(jobs.map(open_job).to_vec());
    let except = |token: &str, now| {
        let Write::LeaseJobs(mut request) = lease(1, token, now) else {
            unreachable!("it is a lease");
        };
        request.except = vec!["other".to_owned(), "held".to_owned()];
        Write::LeaseJobs(request)
    };
    assert_eq!(keys(&subject.write(vec![except("t-1", 0)])), [12]);
    assert_eq!(keys(&subject.write(vec![lease(1, "t-2", 0)])), [11]);
    // Of those whose lease has ended too.
    let outcome = subject.write(vec![except("t-3", 200)]);
    assert_eq!(
        (keys(&outcome), outcome.lapsed),
        (vec![12], vec![ElementInstanceKey(12)])
    );
    assert_eq!(keys(&subject.write(vec![except("t-4", 200)])), [14]);
    let outcome = subject.write(vec![lease(10, "t-5", 200)]);
    assert_eq!(
        (keys(&outcome), outcome.lapsed),
        (vec![11, 13], vec![ElementInstanceKey(11)])
    );
}

/// A lease that has ended is free for others; until somebody takes it, its holder may still complete.
pub fn a_lease_expires(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![open_job(job(11)), open_job(job(12)), open_job(job(13))]);
    subject.write(vec![lease(2, "t-1", 0)]);
    assert_eq!(keys(&subject.write(vec![lease(1, "t-2", 99)])), [13]);
    assert_eq!(keys(&subject.write(vec![lease(10, "t-3", 99)])), [] as [u64; 0]);
    assert!(subject.commit(leased_with(11, "t-1"), vec![]).is_ok());
    // Ended ones and new ones are offered by age.
    subject.write(vec![open_job(job(10)), open_job(job(20))]);
    assert_eq!(keys(&subject.write(vec![lease(3, "t-4", 100)])), [10, 11, 12]);
    assert_eq!(
        subject.refusal(leased_with(11, "t-1"), vec![]),
        Refusal::LeaseStale(ElementInstanceKey(11))
    );
    assert!(subject.commit(leased_with(11, "t-4"), vec![]).is_ok());
}

/// Only the token of the present lease completes a job.
pub fn a_stale_token_is_refused(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![open_job(job(11))]);
    let stale = Refusal::LeaseStale(ElementInstanceKey(11));
    let complete = || vec![Write::CloseJob(ElementInstanceKey(11))];
    assert_eq!(subject.refusal(leased_with(11, "t-1"), complete()), stale);
    subject.write(vec![lease(1, "t-1", 0)]);
    assert_eq!(subject.refusal(leased_with(11, "t-2"), complete()), stale);
    assert_eq!(subject.refusal(leased_with(11, ""), complete()), stale);
    assert!(subject.commit(leased_with(11, "t-1"), complete()).is_ok());
    assert_eq!(subject.refusal(leased_with(11, "t-1"), complete()), stale);
}

/// A job is not offered before its time.
pub fn a_job_waits_for_its_time(make: Make<'_>) {
    let subject = Subject::new(make);
    let mut later = job(11);
    later.not_before = at(50);
    subject.write(vec![open_job(later), open_job(job(12))]);
    assert_eq!(keys(&subject.write(vec![lease(10, "t-1", 49)])), [12]);
    assert_eq!(keys(&subject.write(vec![lease(10, "t-2", 50)])), [11]);
}

/// Once its outcome was accepted, a job is neither offered nor completed again, though its lease has ended.
pub fn a_reported_job_is_not_offered(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![open_job(job(11)), lease(1, "t-1", 0)]);
    assert!(
        subject
            .commit(
                leased_with(11, "t-1"),
                vec![Write::ReportJob(ElementInstanceKey(11))]
            )
            .is_ok()
    );
    assert_eq!(
        keys(&subject.write(vec![lease(10, "t-2", 10_000)])),
        [] as [u64; 0]
    );
    assert_eq!(
        subject.refusal(leased_with(11, "t-1"), vec![]),
        Refusal::LeaseStale(ElementInstanceKey(11))
    );
    let row = subject.store.job(ElementInstanceKey(11)).unwrap().unwrap();
    assert_eq!(row.state, JobState::Reported);
}

/// Opening a job again replaces it (a retry with fewer tries left); closing what is not there does nothing.
pub fn a_job_can_be_replaced_and_closed(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![open_job(job(11)), lease(1, "t-1", 0)]);
    let mut again = job(11);
    again.retries = 2;
    again.not_before = at(30);
    subject.write(vec![open_job(again.clone())]);
    assert_eq!(subject.store.job(ElementInstanceKey(11)).unwrap(), Some(again));
    assert_eq!(keys(&subject.write(vec![lease(1, "t-2", 30)])), [11]);
    subject.write(vec![
        Write::CloseJob(ElementInstanceKey(11)),
        Write::CloseJob(ElementInstanceKey(12)),
        Write::ReportJob(ElementInstanceKey(12)),
    ]);
    assert_eq!(subject.store.job(ElementInstanceKey(11)).unwrap(), None);
    assert_eq!(keys(&subject.write(vec![lease(1, "t-3", 1_000)])), [] as [u64; 0]);
}

/// A job of a held instance is offered to nobody. Who leased it before may report its outcome, however late; let go, it is
/// as it was.
pub fn a_withheld_job_is_not_offered(make: Make<'_>) {
    let mut subject = Subject::new(make);
    let key = ElementInstanceKey;
    subject.write(vec![
        open_job(job(11)),
        lease(1, "t-1", 0),
        open_job(job(12)),
        open_job(job(13)),
    ]);
    subject.write(vec![
        Write::WithholdJob(key(11)),
        Write::WithholdJob(key(12)),
        Write::WithholdJob(key(12)),
        Write::WithholdJob(key(99)),
    ]);
    subject = subject.reopen();
    assert_eq!(keys(&subject.write(vec![lease(10, "t-2", 10_000)])), [13]);
    let state = |subject: &Subject, job| subject.store.job(key(job)).unwrap().unwrap().state;
    assert_eq!(state(&subject, 11), JobState::LeasedWithheld);
    assert_eq!(state(&subject, 12), JobState::Withheld);
    assert!(subject.commit(leased_with(11, "t-1"), vec![]).is_ok());
    subject.write(vec![
        Write::OfferJob(key(11)),
        Write::OfferJob(key(12)),
        Write::OfferJob(key(13)),
    ]);
    assert_eq!(state(&subject, 11), JobState::Leased);
    assert_eq!(keys(&subject.write(vec![lease(10, "t-3", 50)])), [12]);
    // Reported meanwhile, it stays so.
    subject.write(vec![Write::WithholdJob(key(11))]);
    let report = vec![Write::ReportJob(key(11))];
    assert!(subject.commit(leased_with(11, "t-1"), report).is_ok());
    subject.write(vec![Write::OfferJob(key(11))]);
    assert_eq!(state(&subject, 11), JobState::Reported);
}
