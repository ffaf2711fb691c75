//! `tidegate serve`: configuration, wiring, and the ordered end of the process.

mod arguments;
mod config;
mod configure;
mod files;
mod greeting;
mod settings;
mod signals;
mod start;
mod token;

use std::time::Duration;

use tidegate::Runtime;
use tidegate::status::{DrainOutcome, DrainTrigger};
use tidegate_server::Host;
use tidegate_server::listen::Listening;
use tokio::time::Instant;

pub use arguments::ServeArguments;
use config::Config;
use signals::{Asked, Signals};
use start::Started;

use crate::{exit, terminal};

/// Open connections get this long once the drain is over.
const CLOSE_CONNECTIONS: Duration = Duration::from_millis(500);
/// The runtime's own tasks end within this; they have nothing left to do by then.
const CLOSE_RUNTIME: Duration = Duration::from_secs(2);
/// Runs the server to its end and gives the exit code.
pub async fn serve(arguments: ServeArguments) -> u8 {
    let mut signals = match Signals::install() {
        Ok(signals) => signals,
        Err(error) => {
            terminal::error(&format!("the signal handlers could not be installed: {error}"));
            return exit::FAILED;
        }
    };
    let (config, callers) = match configure::configure(arguments) {
        Ok(configured) => configured,
        Err(wrong) => return configure::refuse(&wrong),
    };
    match start::start(&config, callers, &mut signals).await {
        Ok(Started::Running(server)) => {
            let asked = signals.stop().await;
            server.stop(asked, &config, signals).await
        }
        Ok(Started::Stopped) => {
            tracing::info!("stopped while starting");
            report(None, exit::DRAINED)
        }
        Err(failure) => {
            terminal::error(&failure.message);
            failure.code
        }
    }
}

/// A server at work.
struct Server {
    host: Host,
    runtime: Runtime,
    listening: Listening,
}

impl Server {
    /// Readiness and the gate fall at once; the listener closes after the marks; the store last.
    async fn stop(self, asked: Asked, config: &Config, mut signals: Signals) -> u8 {
        let began = Instant::now();
        self.host.begin_stop();
        let runtime = self.runtime.clone();
        let mut draining = tokio::spawn(async move { runtime.drain(DrainTrigger::HostStopSignal).await });
        let outcome = tokio::select! {
            outcome = &mut draining => outcome,
            () = signals.force() => {
                self.force().await;
                draining.await
            }
        };
        if asked
            == (Asked::Drain {
                is_interactive: false,
            })
        {
            tokio::select! {
                () = tokio::time::sleep_until(began + config.listener_lead) => {}
                () = signals.force() => {}
            }
        }
        self.host.end_streams();
        self.listening
            .close(CLOSE_CONNECTIONS.min(config.options.reserve()))
            .await;
        if tokio::time::timeout(CLOSE_RUNTIME, self.runtime.close())
            .await
            .is_err()
        {
            tracing::warn!("the runtime did not close in time; the process ends without it");
        }
        match outcome {
            Ok(outcome) => {
                let code = exit::of_drain(&outcome);
                report(Some(&outcome), code)
            }
            Err(error) => {
                tracing::error!(%error, "the drain panicked");
                report(None, exit::ABORTED)
            }
        }
    }

    async fn force(&self) {
        let forced = self
            .runtime
            .force_drain(Some("second SIGINT".to_owned()), "signal")
            .await;
        if let Err(error) = forced {
            tracing::warn!(%error, "the drain could not be forced");
        }
    }
}

/// The last log line: one JSON object.
fn report(outcome: Option<&DrainOutcome>, code: u8) -> u8 {
    terminal::error_line(&serde_json::json!({ "outcome": outcome, "exitCode": code }).to_string());
    code
}
