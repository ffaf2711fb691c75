//! `tidegate serve`: configuration, wiring, and the ordered end of the process.

mod arguments;
mod blueprint;
mod config;
mod configure;
mod drain;
mod files;
mod greeting;
mod notify;
mod oidc;
mod settings;
mod signals;
mod start;
mod token;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tidegate::shell::Shell;
use tidegate_server::Host;
use tidegate_server::listen::Listening;
use tokio::time::Instant;

pub use arguments::ServeArguments;
pub use config::{Config, Wrong};
use drain::Outcomes;
use notify::Notify;
use signals::{Asked, Signals};
use start::Started;

use crate::{exit, terminal};

/// Open connections get this long once the drain is over.
pub const CLOSE_CONNECTIONS: Duration = Duration::from_millis(500);
/// The runtime's own tasks end within this; they have nothing left to do by then.
pub const CLOSE_RUNTIME: Duration = Duration::from_secs(2);
/// How often the service manager is told that recovery goes on, and asked for time.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the server to its end and gives the exit code.
pub async fn serve(arguments: ServeArguments) -> u8 {
    let mut signals = match Signals::install() {
        Ok(signals) => signals,
        Err(error) => {
            terminal::error(&format!("the signal handlers could not be installed: {error}"));
            return exit::FAILED;
        }
    };
    let notify = Arc::new(Notify::from_environment());
    notify.status("starting");
    let arguments = Arc::new(arguments);
    let read = match configure::configure(&arguments) {
        Ok(read) => read,
        Err(wrong) => return configure::refuse(&wrong),
    };
    match start::start(&arguments, read, notify, &mut signals).await {
        Ok(Started::Running(server)) => {
            let watchdog = {
                let (notify, host) = (server.notify.clone(), server.host.clone());
                tokio::spawn(async move { notify.feed_watchdog(&host).await })
            };
            let asked = server.run(&mut signals).await;
            let code = server.stop(asked, signals).await;
            watchdog.abort();
            code
        }
        Ok(Started::Stopped) => {
            tracing::info!("stopped while starting");
            report(&Vec::new(), exit::DRAINED)
        }
        Err(failure) => {
            terminal::error(&failure.message);
            failure.code
        }
    }
}

/// The settings alone, checked.
pub fn read_settings(arguments: &ServeArguments) -> Result<Config, Wrong> {
    let read = configure::read(arguments);
    if read.wrong.is_empty() {
        Ok(read.config)
    } else {
        Err(read.wrong)
    }
}

/// Says what is wrong with the settings, and gives the exit code.
pub fn refuse_settings(wrong: &Wrong) -> u8 {
    configure::refuse(wrong)
}

/// A server at work.
struct Server {
    host: Host,
    listening: Listening,
    config: Config,
    notify: Arc<Notify>,
}

impl Server {
    /// Serves until a stop is asked for; reloads at each SIGHUP.
    async fn run(&self, signals: &mut Signals) -> Asked {
        let mut stopping = signals.clone();
        tokio::select! {
            biased;
            asked = stopping.stop() => asked,
            () = async {
                self.recovered().await;
                self.notify.ready("accepting work");
                loop {
                    signals.hang_up().await;
                    self.notify.reloading();
                    let result = self.host.reload("SIGHUP").await;
                    tracing::info!(%result, "SIGHUP: reloaded");
                    self.notify.ready("accepting work");
                }
            } => Asked::Nothing,
        }
    }

    /// Ends once what the last process left behind has been taken up; a shell that is paused waits with it.
    async fn recovered(&self) {
        let runtimes: Vec<_> = self.host.shells().iter().filter_map(Shell::runtime).collect();
        let recovered = join_all(runtimes.iter().map(|runtime| async {
            if !runtime.quiescence().is_paused() {
                runtime.recovered().await;
            }
        }));
        tokio::pin!(recovered);
        while tokio::time::timeout(RECOVERY_INTERVAL, &mut recovered)
            .await
            .is_err()
        {
            self.notify
                .extend("recovering what the last process left", RECOVERY_INTERVAL * 10);
        }
    }

    /// Readiness and the gates fall at once; the listener closes after the marks; the stores last.
    async fn stop(self, asked: Asked, mut signals: Signals) -> u8 {
        let began = Instant::now();
        self.host.begin_stop();
        let options = self.config.shells.iter().map(|shell| &shell.options);
        let deadline = options.clone().map(tidegate::Options::effective_deadline).max();
        let reserve = options.map(tidegate::Options::reserve).max().unwrap_or_default();
        let after_it = reserve + CLOSE_CONNECTIONS + CLOSE_RUNTIME + self.config.listener_lead;
        self.notify.stopping(deadline.unwrap_or_default() + after_it);
        let outcomes = drain::drain(&self.host, &mut signals, &self.notify, after_it).await;
        if asked
            == (Asked::Drain {
                is_interactive: false,
            })
        {
            tokio::select! {
                () = tokio::time::sleep_until(began + self.config.listener_lead) => {}
                () = signals.force() => {}
            }
        }
        self.host.end_streams();
        self.listening.close(CLOSE_CONNECTIONS.min(reserve)).await;
        let shells = self.host.shells();
        let closed = join_all(shells.iter().map(Shell::close));
        if tokio::time::timeout(CLOSE_RUNTIME, closed).await.is_err() {
            tracing::warn!("a runtime did not close in time; the process ends without it");
        }
        let code = drain::exit_code(&outcomes);
        self.notify.status("stopped");
        report(&outcomes, code)
    }
}

/// The last log line: one JSON object.
fn report(outcomes: &Outcomes, code: u8) -> u8 {
    terminal::error_line(&drain::report(outcomes, code).to_string());
    code
}
