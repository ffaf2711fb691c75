//! Signals of the operating system, and what each asks for.
//!
//! SIGTERM drains; repeated it changes nothing. SIGINT drains, the second one forces, the third ends the process
//! at once. SIGHUP reloads the shells.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::{exit, terminal};

/// What the signals so far ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Go on.
    Nothing,
    /// Drain. A person at a terminal does not want to wait for routers.
    Drain { is_interactive: bool },
    /// Drain without waiting.
    Force,
}

/// The installed handlers.
#[derive(Debug, Clone)]
pub struct Signals {
    asked: watch::Receiver<Asked>,
    /// How often SIGHUP has come. Those that come during a reload are one more reload after it.
    hang_ups: watch::Receiver<u64>,
}

impl Signals {
    /// Takes over the signals. Must run before anything that takes time.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn install() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let hang_up = signal(SignalKind::hangup())?;
        let (sender, asked) = watch::channel(Asked::Nothing);
        let (hang_up_sender, hang_ups) = watch::channel(0);
        tokio::spawn(listen(terminate, interrupt, hang_up, sender, hang_up_sender));
        Ok(Self { asked, hang_ups })
    }

    /// Ends once the process is asked to stop. Cancel safe.
    pub async fn stop(&mut self) -> Asked {
        self.until(|asked| *asked != Asked::Nothing).await
    }

    /// Ends once force is asked for. Cancel safe.
    pub async fn force(&mut self) {
        self.until(|asked| *asked == Asked::Force).await;
    }

    /// Ends once SIGHUP has come since the last call. Cancel safe.
    pub async fn hang_up(&mut self) {
        if self.hang_ups.changed().await.is_err() {
            // The listening task lives as long as the process.
            std::future::pending().await
        }
    }

    async fn until(&mut self, found: impl FnMut(&Asked) -> bool) -> Asked {
        match self.asked.wait_for(found).await {
            Ok(asked) => *asked,
            // The listening task lives as long as the process.
            Err(_) => std::future::pending().await,
        }
    }
}

async fn listen(
    mut terminate: Signal,
    mut interrupt: Signal,
    mut hang_up: Signal,
    asked: watch::Sender<Asked>,
    hang_ups: watch::Sender<u64>,
) {
    let mut interrupts = 0u32;
    loop {
        tokio::select! {
            Some(()) = terminate.recv() => {
                let is_first = asked.send_if_modified(|asked| step(asked, Asked::Drain { is_interactive: false }));
                if is_first {
                    tracing::info!("SIGTERM: draining");
                } else {
                    tracing::info!("SIGTERM again: the drain goes on unchanged");
                }
            }
            Some(()) = interrupt.recv() => {
                interrupts += 1;
                match interrupts {
                    1 => {
                        tracing::info!("SIGINT: draining; a second one forces it");
                        asked.send_if_modified(|asked| step(asked, Asked::Drain { is_interactive: true }));
                    }
                    2 => {
                        tracing::warn!("SIGINT again: forcing the drain; a third one ends the process at once");
                        asked.send_replace(Asked::Force);
                    }
                    _ => {
                        terminal::error_line("SIGINT a third time: ending at once");
                        std::process::exit(i32::from(exit::AT_ONCE));
                    }
                }
            }
            Some(()) = hang_up.recv() => {
                tracing::info!("SIGHUP: reloading");
                hang_ups.send_modify(|count| *count += 1);
            }
        }
    }
}

/// The first request to stop counts.
fn step(asked: &mut Asked, to: Asked) -> bool {
    let is_first = *asked == Asked::Nothing;
    if is_first {
        *asked = to;
    }
    is_first
}
