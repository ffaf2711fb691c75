//! Two shells inside an axum application: two shops in one program, each with its own store, processes and gate. One is
//! paused, the other goes on. The program serves on a free port, is its own client, and stops cleanly.

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tidegate::activity::demo;
use tidegate::model::Variables;
use tidegate::shell::Wrong;
use tidegate::store::Store;
use tidegate::{Blueprint, Builder, Runtime, Shell, Start};
use tidegate_examples::order_process;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How a shop's shell is made, at the start and at each reload.
struct Shop {
    file: PathBuf,
}

impl Blueprint for Shop {
    fn store(&self) -> Result<Arc<dyn Store>, tidegate::store::Error> {
        tidegate::store::open(&format!("sqlite:{}", self.file.display()))
    }

    fn generation(&self) -> Result<Builder, Wrong> {
        let mut builder = Runtime::builder();
        for (name, activity) in demo() {
            // A real shop has its own; both steps of the process do nothing here.
            if name == "demo.noop" {
                builder = builder
                    .activity("reserve", activity.clone())
                    .activity("ship", activity);
            }
        }
        Ok(builder)
    }
}

type Shops = Arc<BTreeMap<&'static str, Shell>>;
type Answer = (StatusCode, Json<Value>);

fn refused(error: &tidegate::Error) -> Answer {
    let status = match error {
        tidegate::Error::Stopped | tidegate::Error::Draining => StatusCode::SERVICE_UNAVAILABLE,
        tidegate::Error::NoSuchProcess { .. } => StatusCode::NOT_FOUND,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (
        status,
        Json(json!({ "code": error.code(), "detail": error.to_string() })),
    )
}

fn runtime(shops: &Shops, shop: &str) -> Result<Runtime, Answer> {
    let shell = shops.get(shop).and_then(Shell::runtime);
    shell.ok_or_else(|| (StatusCode::NOT_FOUND, Json(json!({ "code": "no-such-shop" }))))
}

async fn order(
    State(shops): State<Shops>,
    Path((shop, id)): Path<(String, String)>,
) -> Result<Answer, Answer> {
    let runtime = runtime(&shops, &shop)?;
    let variables = Variables::parse(&json!({ "orderId": id }).to_string()).unwrap_or_default();
    let start = Start::new()
        .variables(variables)
        .business_key(&id)
        .idempotency_key(&id);
    let order = runtime
        .start_latest("order", start)
        .await
        .map_err(|error| refused(&error))?;
    let state = order.state().await.map_err(|error| refused(&error))?;
    let answer = json!({ "instance": order.key(), "is": state.sub_status });
    Ok((StatusCode::OK, Json(answer)))
}

async fn pause(State(shops): State<Shops>, Path(shop): Path<String>) -> Result<Answer, Answer> {
    let status = runtime(&shops, &shop)?.pause(None, None, "example").await;
    let status = status.map_err(|error| refused(&error))?;
    Ok((StatusCode::OK, Json(json!({ "reason": status.state.reason }))))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut shops = BTreeMap::new();
    for name in ["north", "south"] {
        let file = folder.path().join(format!("{name}.db"));
        let shell = Shell::new(name, Shop { file });
        shell.activate().await?.register(order_process()).await?;
        shops.insert(name, shell);
    }
    let shops: Shops = Arc::new(shops);
    let app = Router::new()
        .route("/shops/{shop}/orders/{id}", post(order))
        .route("/shops/{shop}/pause", post(pause))
        .with_state(shops.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        let until = async { drop(stopped.await) };
        axum::serve(listener, app).with_graceful_shutdown(until).await
    });

    print_and_check(address, "/shops/north/orders/1", 200).await?;
    print_and_check(address, "/shops/north/pause", 200).await?;
    // North accepts and does not execute; south is another runtime and knows nothing of it.
    let accepted = print_and_check(address, "/shops/north/orders/2", 200).await?;
    assert!(accepted.contains("pending"), "{accepted}");
    let executed = print_and_check(address, "/shops/south/orders/2", 200).await?;
    assert!(!executed.contains("pending"), "{executed}");
    print_and_check(address, "/shops/west/orders/1", 404).await?;

    // The drains first, so that who still asks is answered; then the listener.
    for (name, shell) in &*shops {
        let drain = shell.stop().await;
        println!("{name}: {:?}", drain.map(|drain| drain.overall_result));
        shell.close().await;
    }
    drop(stop);
    serving.await??;
    Ok(())
}

/// One POST without a body.
async fn print_and_check(address: SocketAddr, path: &str, expected: u16) -> Result<String, Box<dyn Error>> {
    let mut stream = TcpStream::connect(address).await?;
    let request =
        format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned();
    println!("POST {path}: {body}");
    assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{answer}");
    Ok(body)
}
