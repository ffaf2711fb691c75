//! A small HTTP client that keeps its connection, so that the benchmark costs little beside what it measures.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One connection to a server.
pub struct Client {
    stream: TcpStream,
    address: String,
    buffer: Vec<u8>,
}

/// What a server answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Client {
    /// Connects to `127.0.0.1:8088` or the like.
    ///
    /// # Errors
    /// Nobody listens.
    pub async fn connect(address: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            address: address.to_owned(),
            buffer: Vec::new(),
        })
    }

    /// Sends JSON and waits for the answer.
    ///
    /// # Errors
    /// The connection broke: whether the server has done what was asked is not known.
    pub async fn post(&mut self, path: &str, body: &str) -> std::io::Result<Answer> {
        self.send("POST", path, "application/json", body.as_bytes()).await
    }

    /// Asks for something.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn get(&mut self, path: &str) -> std::io::Result<Answer> {
        self.send("GET", path, "application/json", b"").await
    }

    /// Deploys one file.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn deploy(&mut self, bytes: &[u8]) -> std::io::Result<Answer> {
        self.send("POST", "/api/v1/deployments", "application/xml", bytes)
            .await
    }

    async fn send(&mut self, method: &str, path: &str, kind: &str, body: &[u8]) -> std::io::Result<Answer> {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.stream.write_all(&request).await?;
        self.answer().await
    }

    async fn answer(&mut self) -> std::io::Result<Answer> {
        let head_ends = loop {
            if let Some(at) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            self.more().await?;
        };
        let head = String::from_utf8_lossy(&self.buffer[..head_ends]).to_ascii_lowercase();
        let broken = |what: &str| std::io::Error::other(format!("{what}: {head}"));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| broken("no status"))?;
        let length: usize = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"))
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| broken("no length"))?;
        while self.buffer.len() < head_ends + length {
            self.more().await?;
        }
        let body = serde_json::from_slice(&self.buffer[head_ends..head_ends + length]).unwrap_or(Value::Null);
        self.buffer.drain(..head_ends + length);
        Ok(Answer { status, body })
    }

    async fn more(&mut self) -> std::io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
