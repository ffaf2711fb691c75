//! The event gateway: one winner.

use crate::support::model::{MESSAGE, ON_MESSAGE, model};
use crate::support::{message, stand};

const RACES: usize = 1_000;

#[tokio::test(flavor = "multi_thread")]
async fn case_157_one_event_of_an_event_gateway_wins_and_nothing_of_the_other_is_left() {
    let stand = stand().await;
    let timer = "<timerEventDefinition><timeDuration>PT30S</timeDuration></timerEventDefinition>";
    let body = format!(
        r#"<startEvent id="s"/><eventBasedGateway id="g"/><intermediateCatchEvent id="c">{ON_MESSAGE}</intermediateCatchEvent><intermediateCatchEvent id="t">{timer}</intermediateCatchEvent><endEvent id="by-message"/><endEvent id="by-timer"/>"#
    );
    stand
        .deploy(model("p", MESSAGE, &body, "s>g>c>by-message g>t>by-timer"))
        .await;
    let mut instances = Vec::new();
    for number in 0..RACES {
        instances.push(
            stand
                .start("p", &format!(r#"{{"key": "{number}"}}"#))
                .await
                .instance,
        );
    }
    stand.clock.advance(29_999);
    // A third hears before, a third while the timers fire, a third after.
    for number in 0..RACES / 3 {
        stand.publish("go", &number.to_string(), "{}").await;
    }
    let mut racing = tokio::task::JoinSet::new();
    for number in RACES / 3..2 * RACES / 3 {
        let runtime = stand.runtime.clone();
        racing.spawn(async move { runtime.publish(message("go", &number.to_string(), "{}")).await });
        if number == RACES / 2 {
            stand.clock.advance(1);
        }
    }
    while let Some(published) = racing.join_next().await {
        published.unwrap().unwrap();
    }
    let mut ways = [0, 0];
    for (number, instance) in instances.into_iter().enumerate() {
        stand.finished(instance).await;
        let mut taken = [0, 0];
        for (way, end) in ["by-message", "by-timer"].iter().enumerate() {
            taken[way] = stand.times(instance, &format!("ElementCompleted {end}")).await;
            ways[way] += taken[way];
        }
        assert_eq!(taken.iter().sum::<usize>(), 1, "race {number} took {taken:?}");
        let detail = stand.runtime.instance(instance).await.unwrap();
        assert!(
            detail.waiting_for.is_empty() && detail.tokens.is_empty(),
            "race {number}"
        );
        if number < RACES / 3 {
            assert_eq!(taken, [1, 0], "race {number}");
        }
        if number >= 2 * RACES / 3 {
            assert_eq!(taken, [0, 1], "race {number}");
            let late = stand.publish("go", &number.to_string(), "{}").await;
            assert!(late.delivered_to.is_empty(), "race {number}");
        }
    }
    assert_eq!(ways.iter().sum::<usize>(), RACES);
}
