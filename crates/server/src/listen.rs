//! The accept loop: one listener, bounded connections, and an end that no client can put off.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tower::ServiceExt;

/// Limits of a listener.
#[derive(Debug, Clone, Copy)]
pub struct ListenOptions {
    /// Connections at once; more wait in the operating system's queue.
    pub max_connections: usize,
    /// How long a client may take to send a request's head, and how long a connection may idle between requests.
    pub header_timeout: Duration,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            max_connections: 4096,
            header_timeout: Duration::from_secs(30),
        }
    }
}

/// Streams of one HTTP/2 connection at once.
const MAX_STREAMS: u32 = 256;
/// Pause after a failed accept (out of file descriptors, for example), which would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A listener at work.
#[derive(Debug)]
pub struct Listening {
    address: SocketAddr,
    stop: oneshot::Sender<Duration>,
    task: JoinHandle<()>,
}

impl Listening {
    /// The address, with the real port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts no more, lets requests in hand end within `within`, then closes what is left: idle keep-alive
    /// connections, streams and half-sent requests included. Every task of the listener has ended afterwards.
    pub async fn close(self, within: Duration) {
        // The task lives until it is told, so that the send cannot fail.
        let _ = self.stop.send(within);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the accept loop panicked");
        }
    }
}

/// Serves `router` on `listener`.
///
/// # Errors
/// The listener has no address.
pub fn serve(listener: TcpListener, router: Router, options: ListenOptions) -> io::Result<Listening> {
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(accept_loop(listener, router, options, stopped));
    Ok(Listening { address, stop, task })
}

async fn accept_loop(
    listener: TcpListener,
    router: Router,
    options: ListenOptions,
    mut stopped: oneshot::Receiver<Duration>,
) {
    let graceful = GracefulShutdown::new();
    let slots = Arc::new(Semaphore::new(options.max_connections));
    let mut connections = JoinSet::new();
    let within = loop {
        tokio::select! {
            biased;
            // A dropped handle closes at once.
            within = &mut stopped => break within.unwrap_or_default(),
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            (stream, slot) = accept(&listener, &slots) => {
                let router = router.clone();
                connections.spawn(connection(stream, slot, router, options, graceful.watcher()));
            }
        }
    };
    drop(listener);
    if tokio::time::timeout(within, graceful.shutdown()).await.is_err() {
        tracing::info!(
            connections = connections.len(),
            "closing connections that did not end in time"
        );
    }
    connections.shutdown().await;
}

/// Cancel safe.
async fn accept(listener: &TcpListener, slots: &Arc<Semaphore>) -> (TcpStream, OwnedSemaphorePermit) {
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else {
            // Never closed; without a slot there is nothing to accept.
            std::future::pending::<()>().await;
            continue;
        };
        match listener.accept().await {
            Ok((stream, _)) => return (stream, slot),
            Err(error) => {
                if !is_of_one_client(&error) {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

fn is_of_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset
    )
}

async fn connection(
    stream: TcpStream,
    slot: OwnedSemaphorePermit,
    router: Router,
    options: ListenOptions,
    watcher: Watcher,
) {
    // Answers are written whole; waiting to fill a packet only adds latency.
    let _ = stream.set_nodelay(true);
    let has_asked = Arc::new(AtomicBool::new(false));
    let asked = has_asked.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        asked.store(true, Ordering::Relaxed);
        router.clone().oneshot(request)
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS);
    let served = watcher.watch(
        builder
            .serve_connection(TokioIo::new(stream), service)
            .into_owned(),
    );
    tokio::pin!(served);
    // The protocol is told from the first bytes, and that wait has no timeout of its own.
    let ended = tokio::select! {
        ended = &mut served => Some(ended),
        () = tokio::time::sleep(options.header_timeout) => None,
    };
    match ended {
        Some(Err(error)) => tracing::debug!(%error, "a connection ended early"),
        Some(Ok(())) => {}
        None if has_asked.load(Ordering::Relaxed) => {
            if let Err(error) = served.await {
                tracing::debug!(%error, "a connection ended early");
            }
        }
        None => tracing::debug!("a connection sent no request in time"),
    }
    drop(slot);
}
