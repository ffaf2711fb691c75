//! Talking to a server.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Url};
use serde_json::Value;
use tidegate::model::Diagnostic;

use crate::args::Connection;
use crate::terminal;

/// A server that cannot be reached is told soon.
const CONNECT: Duration = Duration::from_secs(5);
/// Every answer comes within this, beyond what the request itself waits.
const ANSWER: Duration = Duration::from_secs(60);

/// A server and how to be recognised by it.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    /// The shell that requests are about; the default one if none.
    shell: Option<String>,
    token: Option<String>,
}

/// An answer that is no error.
pub struct Answer {
    /// The JSON as the server wrote it.
    pub text: String,
    /// The same, read.
    pub value: Value,
}

/// Why a command failed.
pub enum Failure {
    /// The server said no.
    Problem(Value),
    /// It did not come to that.
    Other(String),
}

impl Failure {
    /// In one line.
    pub fn text(&self) -> String {
        match self {
            Self::Other(message) => message.clone(),
            Self::Problem(problem) => {
                let detail = problem["detail"].as_str().or(problem["title"].as_str());
                let code = problem["code"].as_str().unwrap_or("unknown");
                format!("{} [{code}]", detail.unwrap_or("the server said no"))
            }
        }
    }

    /// Prints it for people.
    pub fn print(&self) {
        match self {
            Self::Other(message) => terminal::error(message),
            Self::Problem(problem) => {
                terminal::error(&terminal::printable(&self.text()));
                print_diagnostics(&problem["diagnostics"]);
            }
        }
    }
}

/// Prints diagnostics as `file:line:col: error[code]: message (hint)`.
pub fn print_diagnostics(diagnostics: &Value) {
    let diagnostics: Vec<Diagnostic> = serde_json::from_value(diagnostics.clone()).unwrap_or_default();
    for diagnostic in diagnostics {
        terminal::error_line(&terminal::printable(&diagnostic.to_string()));
    }
}

impl Client {
    /// For the server of the command line.
    pub fn new(connection: &Connection) -> Result<Self, Failure> {
        let other = |message: String| Failure::Other(message);
        let base = format!(
            "{}{}",
            connection.server.trim_end_matches('/'),
            connection.base_path.trim_end_matches('/')
        );
        let base: Url = base
            .parse()
            .map_err(|error| other(format!("`{base}` is no URL: {error}")))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(other(format!("`{base}`: expected http:// or https://")));
        }
        let token = match (&connection.token, &connection.token_file) {
            (Some(token), _) => Some(token.clone()),
            (None, Some(file)) => {
                let text = std::fs::read_to_string(file);
                let text =
                    text.map_err(|error| other(format!("`{}` cannot be read: {error}", file.display())))?;
                Some(text.trim().to_owned())
            }
            (None, None) => None,
        };
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none());
        // The system's certificates are looked for only where they count, so that they may be missing elsewhere.
        let http = match base.scheme() {
            "https" => http,
            _ => http.tls_certs_only([]),
        };
        let http = http.build().map_err(|error| other(error.to_string()))?;
        let shell = connection.shell.clone();
        Ok(Self {
            http,
            base,
            shell,
            token,
        })
    }

    /// The same server, about another shell.
    pub fn of_shell(&self, shell: &str) -> Self {
        Self {
            shell: Some(shell.to_owned()),
            ..self.clone()
        }
    }

    /// GET of something that is no shell's.
    pub async fn get_of_host(&self, path: &[&str]) -> Result<Answer, Failure> {
        self.send(self.request(Method::GET, self.host_url(path)), Duration::ZERO)
            .await
    }

    /// POST to something that is no shell's. The server may wait for `wait` before it answers.
    pub async fn post_to_host(&self, path: &[&str], body: &Value, wait: Duration) -> Result<Answer, Failure> {
        self.send(self.request(Method::POST, self.host_url(path)).json(body), wait)
            .await
    }

    /// GET of a long answer, handed on piece by piece.
    pub async fn stream(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        take: impl Fn(&[u8]),
    ) -> Result<(), Failure> {
        let request = self.request(Method::GET, self.url_with(path, query));
        let mut response = request.send().await.map_err(|error| self.unreachable(&error))?;
        if !response.status().is_success() {
            return self.read(response).await.map(drop);
        }
        while let Some(piece) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            take(&piece);
        }
        Ok(())
    }

    /// GET with query parameters.
    pub async fn get(&self, path: &[&str], query: &[(&str, String)]) -> Result<Answer, Failure> {
        self.send(
            self.request(Method::GET, self.url_with(path, query)),
            Duration::ZERO,
        )
        .await
    }

    /// POST with a JSON body. The server may wait for `wait` before it answers.
    pub async fn post(&self, path: &[&str], body: &Value, wait: Duration) -> Result<Answer, Failure> {
        self.send(self.request(Method::POST, self.url(path)).json(body), wait)
            .await
    }

    /// DELETE with query parameters. The server may wait for `wait` before it answers.
    pub async fn delete(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        wait: Duration,
    ) -> Result<Answer, Failure> {
        self.send(self.request(Method::DELETE, self.url_with(path, query)), wait)
            .await
    }

    /// PUT with query parameters and a JSON body.
    pub async fn put(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        body: &Value,
    ) -> Result<Answer, Failure> {
        let request = self.request(Method::PUT, self.url_with(path, query));
        self.send(request.json(body), Duration::ZERO).await
    }

    /// PATCH with query parameters and a JSON body.
    pub async fn patch(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        body: &Value,
    ) -> Result<Answer, Failure> {
        let request = self.request(Method::PATCH, self.url_with(path, query));
        self.send(request.json(body), Duration::ZERO).await
    }

    /// POST of files.
    pub async fn upload(&self, path: &[&str], form: reqwest::multipart::Form) -> Result<Answer, Failure> {
        self.send(
            self.request(Method::POST, self.url(path)).multipart(form),
            Duration::ZERO,
        )
        .await
    }

    fn url(&self, path: &[&str]) -> Url {
        match &self.shell {
            Some(shell) => self.host_url(&[&["shells", shell], path].concat()),
            None => self.host_url(path),
        }
    }

    fn url_with(&self, path: &[&str], query: &[(&str, String)]) -> Url {
        let mut url = self.url(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    fn host_url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.http.request(method, url);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn send(&self, request: RequestBuilder, wait: Duration) -> Result<Answer, Failure> {
        let response = request.timeout(wait + ANSWER).send().await;
        self.read(response.map_err(|error| self.unreachable(&error))?)
            .await
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let mut message = format!("no answer from {}: ", self.base);
        message.push_str(if error.is_timeout() {
            "it took too long"
        } else {
            "it cannot be reached"
        });
        if error.is_connect() {
            message.push_str("; is the server running? (--server, `tidegate serve`)");
        }
        Failure::Other(message)
    }

    async fn read(&self, response: reqwest::Response) -> Result<Answer, Failure> {
        let status = response.status();
        let text = response.text().await.map_err(|error| self.unreachable(&error))?;
        let value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        if status.is_success() {
            return Ok(Answer { text, value });
        }
        if value.is_object() {
            return Err(Failure::Problem(value));
        }
        Err(Failure::Other(format!(
            "{} answered {status}; is it a Tidegate server?",
            self.base
        )))
    }
}
