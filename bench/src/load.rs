//! W1's process under way over HTTP: clients that start it and wait for its end, one instance after the other, until the
//! server goes away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate::model::InstanceKey;
use tokio::task::JoinHandle;

use crate::server::Server;

/// Clients that are under way.
pub struct Load {
    clients: Vec<JoinHandle<Told>>,
    ended: Arc<AtomicU64>,
}

/// What the server told its clients.
#[derive(Debug, Default)]
pub struct Told {
    /// Instances that have ended.
    pub ended: Vec<InstanceKey>,
    /// Instances that were started or accepted, and whose end was not told.
    pub accepted: Vec<InstanceKey>,
    /// Starts that were refused, or answered without a key.
    pub refused: u64,
}

impl Load {
    /// `in_flight` clients that wait for the end, and one that does not wait.
    pub async fn begin(server: &Server, process: &str, in_flight: usize) -> Self {
        let ended = Arc::new(AtomicU64::new(0));
        let mut clients = Vec::new();
        for n in 0..=in_flight {
            let mut client = server.client().await;
            let waits = n < in_flight;
            let body =
                format!(r#"{{"processId":"{process}","awaitCompletion":{waits},"requestTimeoutMs":60000}}"#);
            let ended = ended.clone();
            clients.push(tokio::spawn(async move {
                let mut told = Told::default();
                while let Ok(answer) = client.post("/api/v1/process-instances", &body).await {
                    let key = answer.body["instanceKey"].as_str();
                    match key.and_then(|text| text.parse().ok()) {
                        Some(key) if answer.status == 200 && waits => {
                            assert_eq!(answer.body["status"], "finished", "{}", answer.body);
                            told.ended.push(key);
                            ended.fetch_add(1, Ordering::Relaxed);
                        }
                        Some(key) => told.accepted.push(key),
                        None => told.refused += 1,
                    }
                }
                told
            }));
        }
        Self { clients, ended }
    }

    /// How many ends were told so far.
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Waits until every client has lost its server.
    pub async fn told(self) -> Told {
        let mut all = Told::default();
        for client in self.clients {
            let told = client.await.expect("a client runs to its end");
            all.ended.extend(told.ended);
            all.accepted.extend(told.accepted);
            all.refused += told.refused;
        }
        all
    }
}
