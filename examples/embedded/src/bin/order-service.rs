//! A durable order service inside a program: it takes an order, is stopped while the order waits for its payment, and
//! goes on with it after the restart.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use tidegate::activity::{Activity, ActivityContext, ActivityFuture};
use tidegate::api::MessageRequest;
use tidegate::model::{InstanceKey, SubStatus, Variables};
use tidegate::observe::{ObserveOptions, ObservedKind};
use tidegate::{Runtime, ShutdownMode, Start};
use tidegate_examples::{PATIENCE, order_process};

/// What the shop does for an order. A handler may run again after a crash: real ones are keyed by the job.
struct Shop {
    says: &'static str,
    result: &'static str,
}

impl Activity for Shop {
    fn run(&self, context: ActivityContext) -> ActivityFuture {
        println!("  {}: {}", context.element_id, self.says);
        let result = Variables::parse(self.result).unwrap_or_default();
        Box::pin(std::future::ready(Ok(result)))
    }
}

/// A runtime on the file; the next one on the same file goes on where this one stopped.
async fn open(file: &Path) -> Result<Runtime, Box<dyn Error>> {
    let store = tidegate::store::open(&format!("sqlite:{}", file.display()))?;
    let reserve = Shop {
        says: "the goods are reserved",
        result: r#"{"reserved": true}"#,
    };
    let ship = Shop {
        says: "the goods are on their way",
        result: r#"{"parcel": "P-1"}"#,
    };
    let runtime = Runtime::builder()
        .store(store)
        .activity("reserve", Arc::new(reserve))
        .activity("ship", Arc::new(ship))
        .start()
        .await?;
    // The same file again is the same version: a program registers at each of its starts.
    let order = runtime.register(order_process()).await?;
    println!("process `{}`, version {}", order.process_id(), order.version());
    Ok(runtime)
}

/// Takes an order. The customer may press the button twice: it is one order.
async fn take_order(runtime: &Runtime) -> Result<InstanceKey, Box<dyn Error>> {
    let start = || {
        Start::new()
            .variables(Variables::parse(r#"{"orderId": "4711", "amount": 80}"#).unwrap_or_default())
            .business_key("order-4711")
            .idempotency_key("order-4711")
    };
    let order = runtime.start_latest("order", start()).await?;
    let again = runtime.start_latest("order", start()).await?;
    assert_eq!(order.key(), again.key(), "pressed twice, ordered once");
    Ok(order.key())
}

async fn pay(runtime: &Runtime) -> Result<(), tidegate::Error> {
    let paid = MessageRequest {
        name: "paid".to_owned(),
        correlation_key: "4711".to_owned(),
        variables: Variables::new(),
        ttl: None,
        message_id: Some("payment-1".to_owned()),
        tenant: None,
        actor: "bank".to_owned(),
        source: None,
    };
    runtime.publish(paid).await.map(drop)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("orders.db");

    let runtime = open(&file).await?;
    let order = take_order(&runtime).await?;
    // What runs comes to rest; what waits needs nobody.
    let report = runtime.shutdown(ShutdownMode::Drain, PATIENCE).await?;
    println!("stopped: {:?}", report.drain.overall_result);

    let runtime = open(&file).await?;
    let order = runtime.handle(order);
    println!("order {} waits for {:?}", order.key(), order.waiting_for().await?);
    let watch = order.observe(ObserveOptions::new().kind(ObservedKind::Element))?;
    let watching = tokio::spawn(print_elements(watch));
    pay(&runtime).await?;
    let ended = order.wait(PATIENCE).await?;
    assert_eq!(ended.sub_status, SubStatus::Finished);
    println!("done: {}", ended.variables.unwrap_or_default().to_json());
    runtime.shutdown(ShutdownMode::Drain, PATIENCE).await?;
    watching.await?;
    Ok(())
}

/// Ends with the runtime.
async fn print_elements(mut watch: tidegate::observe::Observation) {
    while let Some(notice) = watch.next().await {
        let element = notice.event.element_id.as_deref().unwrap_or("-");
        println!("  seen: {} {element}", notice.event.name);
    }
}
