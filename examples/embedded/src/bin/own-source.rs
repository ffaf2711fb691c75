//! An activity and an ingress source of the program's own: a till hands orders to the runtime, which starts a process
//! for each. Paused, the till keeps what comes; nothing is lost, and nothing is taken twice.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tidegate::activity::{Activity, ActivityContext, ActivityError, ActivityFuture};
use tidegate::api::{Resource, StartRequest};
use tidegate::ingress::{Ingress, IngressSource, Offer, Transition};
use tidegate::model::{SubStatus, Variables};
use tidegate::store::{InstanceFilter, Page};
use tidegate::{Runtime, ShutdownMode};
use tidegate_examples::PATIENCE;

const PROCESS: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
    xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="https://tidegate.dev/examples">
  <bpmn:process id="receipt" isExecutable="true">
    <bpmn:startEvent id="sold"/>
    <bpmn:serviceTask id="print"><bpmn:extensionElements><zeebe:taskDefinition type="print-receipt"/></bpmn:extensionElements></bpmn:serviceTask>
    <bpmn:endEvent id="printed"/>
    <bpmn:sequenceFlow id="a" sourceRef="sold" targetRef="print"/>
    <bpmn:sequenceFlow id="b" sourceRef="print" targetRef="printed"/>
  </bpmn:process>
</bpmn:definitions>"#;

/// Prints receipts, and stops when it is told to: the job is done again when the instance goes on.
struct Printer;

impl Activity for Printer {
    fn run(&self, context: ActivityContext) -> ActivityFuture {
        Box::pin(async move {
            tokio::select! {
                () = context.stop.stopped() => Err(ActivityError::Stopped),
                () = tokio::task::yield_now() => {
                    println!("  receipt: {}", context.variables.to_json());
                    Ok(Variables::new())
                }
            }
        })
    }
}

/// A till: sales wait in it until they are durable in the runtime.
#[derive(Clone, Default)]
struct Till(Arc<Inside>);

#[derive(Default)]
struct Inside {
    sales: Mutex<VecDeque<u32>>,
    is_open: AtomicBool,
    ingress: OnceLock<Ingress>,
    /// Held while one is handed over.
    hand: tokio::sync::Mutex<()>,
}

impl Till {
    fn sell(&self, number: u32) {
        self.sales().push_back(number);
        self.go();
    }

    fn sales(&self) -> std::sync::MutexGuard<'_, VecDeque<u32>> {
        self.0.sales.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over what waits, one after the other, while it is open.
    fn go(&self) {
        let till = self.clone();
        tokio::spawn(async move {
            let Some(ingress) = till.0.ingress.get() else {
                return;
            };
            loop {
                let _hand = till.0.hand.lock().await;
                if !till.0.is_open.load(Ordering::SeqCst) {
                    return;
                }
                let Some(number) = till.sales().front().copied() else {
                    return;
                };
                let variables = Variables::parse(&format!(r#"{{"sale": {number}}}"#)).unwrap_or_default();
                let start = StartRequest {
                    // Handed over twice, after a crash in between, it is one.
                    idempotency_key: Some(format!("sale-{number}")),
                    ..StartRequest::latest("receipt").variables(variables)
                };
                match ingress.offer(Offer::Start(start)).await {
                    // It is on disk: only now it leaves the till.
                    Ok(_) => drop(till.sales().pop_front()),
                    Err(error) => {
                        println!("  the till keeps sale {number}: {error}");
                        return;
                    }
                }
            }
        });
    }
}

impl IngressSource for Till {
    fn name(&self) -> &str {
        "till"
    }

    fn attach(&self, ingress: Ingress) {
        self.0.is_open.store(!ingress.starts_paused(), Ordering::SeqCst);
        // A till belongs to one runtime.
        let _ = self.0.ingress.set(ingress);
        self.go();
    }

    fn pause(&self) -> Transition {
        self.0.is_open.store(false, Ordering::SeqCst);
        let till = self.clone();
        Box::pin(async move {
            // What is being handed over has been.
            drop(till.0.hand.lock().await);
            Ok(())
        })
    }

    fn resume(&self) -> Transition {
        self.0.is_open.store(true, Ordering::SeqCst);
        self.go();
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Waits until so many receipts are printed.
async fn printed(runtime: &Runtime, count: usize) -> Result<(), Box<dyn Error>> {
    let filter = InstanceFilter {
        sub_statuses: vec![SubStatus::Finished],
        ..InstanceFilter::default()
    };
    let all = async {
        let mut changes = runtime.watch();
        while runtime.instances(filter.clone(), Page::first(100)).await?.len() < count {
            // A change of the status, or another look.
            let _ = tokio::time::timeout(std::time::Duration::from_millis(20), changes.changed()).await;
        }
        Ok::<_, tidegate::Error>(())
    };
    tokio::time::timeout(PATIENCE, all).await??;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let till = Till::default();
    let runtime = Runtime::builder()
        .activity("print-receipt", Arc::new(Printer))
        .source(Arc::new(till.clone()))
        .start()
        .await?;
    let file = Resource {
        name: "receipt.bpmn".to_owned(),
        bytes: PROCESS.as_bytes().to_vec(),
    };
    runtime.register(file).await?;
    (1..=3).for_each(|number| till.sell(number));
    printed(&runtime, 3).await?;

    runtime
        .pause(Some("paper is out".to_owned()), None, "cashier")
        .await?;
    (4..=5).for_each(|number| till.sell(number));
    println!("paused; {} sales wait in the till", till.sales().len());
    runtime.resume("cashier").await?;
    printed(&runtime, 5).await?;

    let report = runtime.shutdown(ShutdownMode::Drain, PATIENCE).await?;
    let state = report.drain.sources.iter().find(|source| source.name == "till");
    println!("stopped; the till is {:?}", state.map(|source| source.state));
    assert!(till.sales().is_empty());
    Ok(())
}
