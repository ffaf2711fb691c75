//! Messages and subscriptions.

use std::sync::Arc;

use tidegate_model::{ElementIndex, ElementInstanceKey, InstanceKey, MessageKey, Stimulus, Variables};

use super::rows::*;
use super::{Make, Subject, at, failure_of};
use crate::commit::{Delivery, Outcome, Write};
use crate::error::ErrorKind;
use crate::row::{Awaited, InstanceRow, SubscriptionRow};

/// Who took which message: (message, owner).
fn taken(outcome: &Outcome) -> Vec<(u64, u64)> {
    outcome
        .deliveries
        .iter()
        .map(|delivery| (delivery.message.get(), owner_of(delivery)))
        .collect()
}

fn owner_of(delivery: &Delivery) -> u64 {
    match minicbor::decode(&delivery.payload) {
        Ok(Stimulus::Deliver { owner, .. }) => owner.get(),
        other => panic!("expected a delivery, found {other:?}"),
    }
}

/// A published message goes to the open subscription, which is closed by it.
pub fn a_message_finds_its_subscription(make: Make<'_>) {
    let mut subject = Subject::new(make);
    assert_eq!(
        subject.write(vec![subscribe(subscription(1, "order"), 0)]),
        Outcome::default()
    );
    subject = subject.reopen();
    assert_eq!(taken(&subject.write(vec![publish(message(50), 1)])), [(50, 1)]);
    // Closed: the next one waits, and no subscription meets it twice.
    assert_eq!(subject.write(vec![publish(message(51), 1)]), Outcome::default());
    assert_eq!(
        taken(&subject.write(vec![subscribe(subscription(2, "order"), 2)])),
        [(51, 2)]
    );
}

/// Of each process id one subscription takes the message.
pub fn a_message_is_taken_once_for_each_process_id(make: Make<'_>) {
    let subject = Subject::new(make);
    for (owner, process_id) in [
        (1, "order"),
        (2, "refund"),
        (3, "order"),
        (4, "archive"),
        (5, "refund"),
    ] {
        subject.write(vec![subscribe(subscription(owner, process_id), 0)]);
    }
    assert_eq!(
        taken(&subject.write(vec![publish(message(50), 1)])),
        [(50, 1), (50, 2), (50, 4)]
    );
    assert_eq!(
        taken(&subject.write(vec![publish(message(51), 1)])),
        [(51, 3), (51, 5)]
    );
    assert_eq!(taken(&subject.write(vec![publish(message(52), 1)])), []);
}

/// The oldest subscription comes first: the one that was opened first, whatever its key.
pub fn the_oldest_subscription_takes_the_message(make: Make<'_>) {
    let subject = Subject::new(make);
    for owner in [30, 10, 20] {
        subject.write(vec![subscribe(subscription(owner, "order"), 0)]);
    }
    for (message_key, owner) in [(50, 30), (51, 10), (52, 20)] {
        assert_eq!(
            taken(&subject.write(vec![publish(message(message_key), 1)])),
            [(message_key, owner)]
        );
    }
}

/// A new subscription that ends with its first message takes the oldest that waits, and one only.
pub fn a_subscription_takes_buffered_messages_oldest_first(make: Make<'_>) {
    let mut subject = Subject::new(make);
    subject.write(vec![
        publish(message(52), 0),
        publish(message(50), 0),
        publish(message(51), 0),
    ]);
    subject = subject.reopen();
    for (owner, expected) in [(1, 50), (2, 51), (3, 52)] {
        assert_eq!(
            taken(&subject.write(vec![subscribe(subscription(owner, "order"), 1)])),
            [(expected, owner)]
        );
    }
    assert_eq!(
        taken(&subject.write(vec![subscribe(subscription(4, "order"), 1)])),
        []
    );
    assert_eq!(taken(&subject.write(vec![publish(message(53), 1)])), [(53, 4)]);
}

/// A subscription that is not `once` takes all that wait and all that come.
pub fn a_lasting_subscription_takes_every_message(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![publish(message(51), 0), publish(message(50), 0)]);
    let mut lasting = subscription(1, "order");
    lasting.once = false;
    assert_eq!(
        taken(&subject.write(vec![subscribe(lasting, 1)])),
        [(50, 1), (51, 1)]
    );
    for key in 52..55 {
        assert_eq!(taken(&subject.write(vec![publish(message(key), 1)])), [(key, 1)]);
    }
    subject.write(vec![Write::Unsubscribe {
        owner: ElementInstanceKey(1),
        element: ElementIndex(4),
    }]);
    assert_eq!(taken(&subject.write(vec![publish(message(55), 1)])), []);
}

/// A message waits until it expires; then it is reported once and meets nobody.
pub fn a_message_waits_until_it_expires(make: Make<'_>) {
    let subject = Subject::new(make);
    let mut brief = message(50);
    brief.expires_at = at(5);
    // No time to wait at all: gone at once, unless somebody is there.
    assert_eq!(
        subject.write(vec![publish(brief.clone(), 5)]).expired,
        [MessageKey(50)]
    );
    subject.write(vec![subscribe(subscription(9, "order"), 5)]);
    assert_eq!(taken(&subject.write(vec![publish(brief.clone(), 5)])), [(50, 9)]);

    subject.write(vec![publish(brief.clone(), 4), publish(message(51), 4)]);
    let mut later = message(49);
    later.expires_at = at(6);
    subject.write(vec![publish(later, 4)]);
    assert_eq!(
        taken(&subject.write(vec![subscribe(subscription(1, "order"), 10)])),
        [(51, 1)]
    );
    let expire = |now, limit| vec![Write::ExpireMessages { now: at(now), limit }];
    assert_eq!(subject.write(expire(4, 10)).expired, []);
    assert_eq!(subject.write(expire(10, 1)).expired, [MessageKey(50)]);
    assert_eq!(subject.write(expire(10, 10)).expired, [MessageKey(49)]);
    assert_eq!(subject.write(expire(10, 10)).expired, []);
    // Buffered up to its expiry, not including it.
    subject.write(vec![publish(message(60), 4)]);
    assert_eq!(
        taken(&subject.write(vec![subscribe(subscription(2, "order"), 1_000)])),
        []
    );
    assert_eq!(subject.write(expire(1_000, 10)).expired, [MessageKey(60)]);
}

/// With a start event as taker the message is not buffered, and open subscriptions take it as well.
pub fn a_message_with_a_taker_is_not_buffered(make: Make<'_>) {
    let subject = Subject::new(make);
    let publish = |key| {
        vec![Write::Publish {
            row: message(key),
            has_taker: true,
            now: at(0),
        }]
    };
    assert_eq!(subject.write(publish(50)), Outcome::default());
    assert_eq!(
        taken(&subject.write(vec![subscribe(subscription(1, "order"), 0)])),
        []
    );
    assert_eq!(taken(&subject.write(publish(51))), [(51, 1)]);
}

/// Tenants, names and correlation keys never meet each other's.
pub fn tenants_names_and_keys_are_apart(make: Make<'_>) {
    let subject = Subject::new(make);
    let mut others = [
        subscription(1, "order"),
        subscription(2, "order"),
        subscription(3, "order"),
    ];
    others[0].tenant = Arc::from("acme");
    others[1].message_name = Arc::from("paid ");
    others[2].correlation_key = String::new();
    let opened = others.clone().map(|row| subscribe(row, 0));
    assert_eq!(taken(&subject.write(opened.to_vec())), []);
    assert_eq!(taken(&subject.write(vec![publish(message(50), 0)])), []);
    // Nor does the buffered one meet them.
    let opened = others.map(|row| subscribe(row, 0));
    assert_eq!(taken(&subject.write(opened.to_vec())), []);
    let mut of_acme = message(51);
    of_acme.tenant = Arc::from("acme");
    let mut without_key = message(52);
    without_key.correlation_key = String::new();
    assert_eq!(
        taken(&subject.write(vec![publish(of_acme, 0), publish(without_key, 0)])),
        [(51, 1), (52, 3)]
    );
    assert_eq!(
        taken(&subject.write(vec![subscribe(subscription(4, "order"), 0)])),
        [(50, 4)]
    );
}

/// Opening a subscription again replaces the one before, which takes nothing any more.
pub fn a_replaced_subscription_is_gone(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![
        subscribe(subscription(1, "order"), 0),
        subscribe(subscription(2, "order"), 0),
    ]);
    let mut other_key = subscription(1, "order");
    other_key.correlation_key = "43".to_owned();
    subject.write(vec![subscribe(other_key, 0)]);
    assert_eq!(taken(&subject.write(vec![publish(message(50), 0)])), [(50, 2)]);
    let mut other = message(51);
    other.correlation_key = "43".to_owned();
    assert_eq!(taken(&subject.write(vec![publish(other, 0)])), [(51, 1)]);
    // Replaced and matched at once.
    subject.write(vec![subscribe(subscription(5, "order"), 0)]);
    let mut waiting = message(52);
    waiting.correlation_key = "44".to_owned();
    subject.write(vec![publish(waiting, 0)]);
    let mut again = subscription(5, "order");
    again.correlation_key = "44".to_owned();
    assert_eq!(taken(&subject.write(vec![subscribe(again, 0)])), [(52, 5)]);
    assert_eq!(taken(&subject.write(vec![publish(message(53), 0)])), []);
}

/// An outer instance, a called one and one called by that, with the element instances 10, 20 and 30 as owners of what they
/// wait for; the first call stands in a sub-process (11), the second at the top.
fn called() -> Vec<Write> {
    let row = |key: u64, parent: Option<(u64, u64)>, enclosing: &[u64]| {
        let row = InstanceRow {
            parent: parent.map(|(caller, _)| InstanceKey(caller)),
            parent_element: parent.map(|(_, call)| ElementInstanceKey(call)),
            enclosing: enclosing.iter().map(|key| ElementInstanceKey(*key)).collect(),
            ..instance(key)
        };
        Write::CreateInstance {
            row: Box::new(row),
            state: None,
        }
    };
    vec![
        row(1, None, &[]),
        row(2, Some((1, 12)), &[11]),
        row(3, Some((2, 20)), &[]),
    ]
}

/// What waits in an instance of [`called`].
fn waits_in(instance: u64, owner: u64, process_id: &str, ends: bool) -> SubscriptionRow {
    SubscriptionRow {
        instance: InstanceKey(instance),
        ends,
        ..subscription(owner, process_id)
    }
}

/// A message that ends a call, or what the call stands in, is not taken by what was called from there, however deep: another
/// instance of that process takes it instead. One that ends nothing is taken by all.
pub fn what_ends_by_a_message_does_not_take_it(make: Make<'_>) {
    // The owner of the outer wait: the call activity, the sub-process around it, the instance's own key.
    for outer in [12, 11, 1] {
        let mut subject = Subject::new(make);
        subject.write(called());
        let waits = [
            waits_in(1, outer, "outer", true),
            waits_in(2, 20, "middle", true),
            waits_in(3, 30, "inner", false),
            subscription(40, "inner"),
        ];
        subject.write(waits.map(|row| subscribe(row, 0)).to_vec());
        subject = subject.reopen();
        let outcome = subject.write(vec![publish(message(50), 1)]);
        assert_eq!(taken(&outcome), [(50, outer), (50, 40)]);
        // They wait still: whoever took it may find that it was too late for it.
        let outcome = subject.write(vec![publish(message(51), 1)]);
        assert_eq!(taken(&outcome), [(51, 20)]);
    }
    let subject = Subject::new(make);
    subject.write(called());
    let waits = [
        waits_in(1, 12, "outer", false),
        waits_in(2, 20, "middle", false),
        waits_in(3, 30, "inner", false),
        // Attached to something else.
        waits_in(1, 13, "beside", true),
    ];
    subject.write(waits.map(|row| subscribe(row, 0)).to_vec());
    let outcome = subject.write(vec![publish(message(50), 1)]);
    assert_eq!(taken(&outcome), [(50, 12), (50, 20), (50, 30), (50, 13)]);
}

/// The same for a signal.
pub fn what_ends_by_a_signal_does_not_take_it(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(called());
    let waits = [
        waits_in(3, 30, "inner", true),
        waits_in(2, 20, "middle", true),
        waits_in(1, 11, "outer", true),
        subscription(40, "inner"),
    ];
    let signals = waits.map(|row| SubscriptionRow {
        awaited: Awaited::Signal,
        correlation_key: String::new(),
        ..row
    });
    subject.write(signals.map(|row| subscribe(row, 0)).to_vec());
    let broadcast = Write::Broadcast {
        tenant: Arc::from(TENANT),
        name: "paid".to_owned(),
        variables: "{}".to_owned(),
        except: None,
        from: None,
        now: at(1),
    };
    let outcome = subject.write(vec![broadcast]);
    let takers: Vec<_> = outcome
        .deliveries
        .iter()
        .map(|delivery| delivery.instance)
        .collect();
    assert_eq!(takers, [InstanceKey(1), InstanceKey(1_040)]);
}

/// A payload that is no JSON object is refused at its publication, where it harms nobody else.
pub fn a_bad_payload_fails_its_own_commit(make: Make<'_>) {
    let subject = Subject::new(make);
    let mut bad = message(50);
    bad.variables = "[1".to_owned();
    let result = subject.commit(vec![], vec![create(1), publish(bad, 0)]);
    assert_eq!(failure_of(result), ErrorKind::Internal);
    assert_eq!(subject.store.instance(InstanceKey(1)).unwrap(), None);
    assert_eq!(
        taken(&subject.write(vec![subscribe(subscription(1, "order"), 0)])),
        []
    );
}

/// A match is queued as an encoded `Deliver` for its instance, and told with its payload.
pub fn deliveries_stand_in_the_queue(make: Make<'_>) {
    let subject = Subject::new(make);
    let mut lasting = subscription(1, "order");
    lasting.once = false;
    subject.write(vec![subscribe(lasting, 0)]);
    let outcome = subject.write(vec![publish(message(50), 7)]);
    let queued = subject.store.stimuli(None, 10).unwrap();
    assert_eq!((outcome.deliveries.len(), queued.len()), (1, 1));
    let (delivery, row) = (&outcome.deliveries[0], &queued[0]);
    assert_eq!((delivery.stimulus, &delivery.payload), (row.key, &row.payload));
    assert_eq!(
        (delivery.message, delivery.instance),
        (MessageKey(50), InstanceKey(1_001))
    );
    assert_eq!(
        (row.domain.as_str(), row.source.as_str()),
        ("instance/1001", "http.api")
    );
    assert_eq!((row.accepted_at, row.attempts), (at(7), 0));
    let expected = Stimulus::Deliver {
        message: MessageKey(50),
        instance: InstanceKey(1_001),
        owner: ElementInstanceKey(1),
        element: ElementIndex(4),
        name: "paid".to_owned(),
        correlation_key: "42".to_owned(),
        variables: Variables::parse("{\"amount\": 50}").unwrap(),
        expires_at: at(1_000),
        from: message(50).from,
    };
    assert_eq!(minicbor::decode::<Stimulus>(&row.payload).unwrap(), expected);
    // Deliveries and own stimuli share one order.
    let outcome = subject.write(vec![
        Write::AddStimulus(stimulus("a", 8)),
        publish(message(51), 8),
    ]);
    assert!(outcome.stimuli[0] > row.key && outcome.deliveries[0].stimulus > outcome.stimuli[0]);
    assert_eq!(subject.store.queue().unwrap().depth, 3);
}

/// Whoever takes a message that waited learns who sent it.
pub fn a_buffered_message_keeps_its_sender(make: Make<'_>) {
    let mut subject = Subject::new(make);
    let mut unsigned = message(51);
    unsigned.from = None;
    subject.write(vec![publish(message(50), 1), publish(unsigned, 1)]);
    subject = subject.reopen();
    let all = SubscriptionRow {
        once: false,
        ..subscription(1, "order")
    };
    let outcome = subject.write(vec![subscribe(all, 2)]);
    let senders: Vec<_> = outcome
        .deliveries
        .iter()
        .map(|delivery| match minicbor::decode(&delivery.payload) {
            Ok(Stimulus::Deliver { from, .. }) => from,
            other => panic!("expected a delivery, found {other:?}"),
        })
        .collect();
    assert_eq!(senders, [message(50).from, None]);
}

/// A signal goes to everybody who waits for it, in the order in which they began to, and is not kept; messages and
/// signals of one name have nothing to do with each other.
pub fn a_signal_goes_to_all_who_wait(make: Make<'_>) {
    let subject = Subject::new(make);
    let waits = |owner: u64, once: bool| SubscriptionRow {
        awaited: Awaited::Signal,
        correlation_key: String::new(),
        once,
        ..subscription(owner, "order")
    };
    let other = SubscriptionRow {
        tenant: Arc::from("other"),
        ..waits(4, true)
    };
    let of_message = SubscriptionRow {
        correlation_key: String::new(),
        ..subscription(5, "order")
    };
    for row in [waits(2, true), waits(1, true), waits(3, false), other, of_message] {
        subject.write(vec![subscribe(row, 0)]);
    }
    let broadcast = || Write::Broadcast {
        tenant: Arc::from(TENANT),
        name: "paid".to_owned(),
        variables: r#"{"a":1}"#.to_owned(),
        except: Some(InstanceKey(7 + 1_000)),
        from: message(50).from,
        now: at(1),
    };
    subject.write(vec![subscribe(waits(7, true), 0)]);
    let outcome = subject.write(vec![broadcast()]);
    let owners: Vec<u64> = outcome
        .deliveries
        .iter()
        .map(|delivery| match minicbor::decode(&delivery.payload) {
            Ok(Stimulus::Signal {
                owner,
                variables,
                from,
                ..
            }) => {
                assert_eq!(from, message(50).from, "who threw it");
                assert_eq!(variables.to_json(), r#"{"a":1}"#);
                owner.get()
            }
            other => panic!("expected a signal, found {other:?}"),
        })
        .collect();
    assert_eq!(owners, [2, 1, 3]);
    // The first two are closed by it; the lasting one takes the next, and nobody finds an old one.
    assert_eq!(subject.write(vec![broadcast()]).deliveries.len(), 1);
    assert_eq!(
        subject.write(vec![subscribe(waits(6, true), 2)]),
        Outcome::default()
    );
}

/// Every buffered message waits longer by the same span, one that had run out meanwhile included.
pub fn the_life_of_messages_can_be_extended(make: Make<'_>) {
    let mut subject = Subject::new(make);
    let mut brief = message(50);
    brief.expires_at = at(5);
    let mut eternal = message(51);
    eternal.expires_at = tidegate_model::Timestamp::from_ms(i64::MAX);
    subject.write(vec![publish(brief, 4), publish(eternal, 4)]);
    subject.write(vec![Write::ExtendMessages { by_ms: 100 }]);
    subject = subject.reopen();
    let expire = |now| {
        vec![Write::ExpireMessages {
            now: at(now),
            limit: 10,
        }]
    };
    assert_eq!(subject.write(expire(104)).expired, []);
    assert_eq!(subject.write(expire(105)).expired, [MessageKey(50)]);
    assert_eq!(
        taken(&subject.write(vec![subscribe(subscription(1, "order"), 200)])),
        [(51, 1)]
    );
}
