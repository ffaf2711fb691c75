//! What the service manager is told, in the protocol of `sd_notify(3)`: one datagram for each message.
//!
//! Without `NOTIFY_SOCKET` nothing is sent. A message that cannot be sent is dropped: the manager is told of
//! nothing that it does not also see.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use futures_util::future::join_all;
use tidegate_server::Host;

/// The way to the service manager.
#[derive(Debug)]
pub struct Notify {
    to: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Notify {
    /// From the environment that the manager made.
    pub fn from_environment() -> Self {
        let to = std::env::var("NOTIFY_SOCKET").ok().and_then(|name| open(&name));
        let is_meant =
            std::env::var("WATCHDOG_PID").map_or(true, |pid| pid == std::process::id().to_string());
        let micros = std::env::var("WATCHDOG_USEC")
            .ok()
            .and_then(|text| text.parse().ok());
        let watchdog = micros
            .filter(|micros| is_meant && *micros > 0)
            .map(Duration::from_micros);
        Self { to, watchdog }
    }

    /// Starting is over.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    /// The configuration is being read again; [`Notify::ready`] ends that.
    pub fn reloading(&self) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={micros}\nSTATUS=reloading"));
    }

    /// The end has begun and may take this long.
    pub fn stopping(&self, at_most: Duration) {
        self.send(&format!(
            "STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC={}",
            at_most.as_micros()
        ));
    }

    /// What is going on.
    pub fn status(&self, text: &str) {
        self.send(&format!("STATUS={text}"));
    }

    /// What is going on, and that it may go on for this long yet.
    pub fn extend(&self, text: &str, at_most: Duration) {
        self.send(&format!(
            "STATUS={text}\nEXTEND_TIMEOUT_USEC={}",
            at_most.as_micros()
        ));
    }

    /// Tells the manager that the process is alive for as long as the engine makes progress: a question to every
    /// owner of every shell, answered within the time that the manager gives. Ends at once without a watchdog.
    pub async fn feed_watchdog(&self, host: &Host) {
        /// Questions in the manager's time.
        const QUESTIONS: u32 = 3;
        let (Some(time), true) = (self.watchdog, self.to.is_some()) else {
            return std::future::pending().await;
        };
        let mut turns = tokio::time::interval(time / QUESTIONS);
        turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut was_late = false;
        loop {
            turns.tick().await;
            let generations: Vec<_> = host
                .shells()
                .iter()
                .filter_map(tidegate::Shell::runtime)
                .collect();
            let answers = join_all(generations.iter().map(tidegate::Runtime::progress));
            let is_late = tokio::time::timeout(time / 2, answers).await.is_err();
            if !is_late {
                self.send("WATCHDOG=1");
            } else if !was_late {
                tracing::error!("the engine makes no progress; the watchdog is not fed");
            }
            was_late = is_late;
        }
    }

    fn send(&self, message: &str) {
        if let Some((socket, to)) = &self.to
            && let Err(error) = socket.send_to_addr(message.as_bytes(), to)
        {
            tracing::debug!(%error, "the service manager could not be told");
        }
    }
}

fn open(name: &str) -> Option<(UnixDatagram, SocketAddr)> {
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    };
    let socket = UnixDatagram::unbound().and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
    match (socket, address) {
        (Ok(socket), Ok(address)) => Some((socket, address)),
        (Err(error), _) | (_, Err(error)) => {
            tracing::warn!(%error, "NOTIFY_SOCKET cannot be used; the service manager is told nothing");
            None
        }
    }
}
