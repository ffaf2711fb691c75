//! Several shells in one host: each for itself.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use common::{TOKEN, answer, service};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate::shell::{Blueprint, Shell, Wrong};
use tidegate::store::{self, Store};
use tidegate::{Builder, Options, PausePersistence, Runtime};
use tidegate_server::auth::{Credential, Permissions};
use tidegate_server::listen::{self, ListenOptions};
use tidegate_server::{ApiOptions, Auth, Host, routes};

/// What the next configuration of a test shell says.
#[derive(Clone)]
struct Knob {
    says: Arc<AtomicU8>,
    home: Arc<tempfile::TempDir>,
}

impl Default for Knob {
    fn default() -> Self {
        Self {
            says: Arc::default(),
            home: Arc::new(tempfile::tempdir().unwrap()),
        }
    }
}

const SOUND: u8 = 0;
const INVALID: u8 = 1;
const WRONG_OPTIONS: u8 = 2;
/// The store cannot be opened.
const NO_STORE: u8 = 3;

impl Knob {
    fn set(&self, to: u8) {
        self.says.store(to, Ordering::SeqCst);
    }
}

impl Blueprint for Knob {
    fn store(&self) -> Result<Arc<dyn Store>, store::Error> {
        match self.says.load(Ordering::SeqCst) {
            NO_STORE => store::open("nowhere:"),
            _ => store::open(&format!("sqlite:{}", self.home.path().join("shell.db").display())),
        }
    }

    fn generation(&self) -> Result<Builder, Wrong> {
        let mut options = Options {
            drain_deadline: Duration::from_millis(500),
            pause_persistence: PausePersistence::AcrossReactivations,
            owners: 1,
            ..Options::default()
        };
        match self.says.load(Ordering::SeqCst) {
            INVALID => return Err(vec![("drain-deadline".to_owned(), "is no duration".to_owned())]),
            WRONG_OPTIONS => options.drain_deadline = Duration::ZERO,
            _ => {}
        }
        Ok(Runtime::builder().options(options).demo_activities())
    }
}

/// Shells `default`, `a` and `b`, with a token for each of the last two.
struct Shells {
    url: String,
    host: Host,
    a: Knob,
    b: Knob,
    http: reqwest::Client,
    _listening: listen::Listening,
}

async fn shells() -> Shells {
    let host = Host::new();
    let (a, b) = (Knob::default(), Knob::default());
    for (id, knob) in [("default", Knob::default()), ("a", a.clone()), ("b", b.clone())] {
        let shell = Shell::new(id, knob);
        shell.activate().await.unwrap();
        host.add(shell);
    }
    host.mark_started();
    let own = |shell: &str| {
        Credential::of_token(&format!("token-of-{shell}"), shell, Permissions::ALL).of_shell(shell)
    };
    let operator = Credential::of_token(TOKEN, "operator", Permissions::ALL);
    let auth = Auth::tokens(vec![operator, own("a"), own("B")]);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let router = tidegate_server::router(host.clone(), auth, ApiOptions::default());
    let listening = listen::serve(listener, router, ListenOptions::default()).unwrap();
    Shells {
        url: format!("http://{}/api/v1", listening.address()),
        host,
        a,
        b,
        http: reqwest::Client::new(),
        _listening: listening,
    }
}

impl Shells {
    async fn ask(&self, token: &str, method: Method, path: &str) -> (StatusCode, Value) {
        answer(
            self.http
                .request(method, format!("{}{path}", self.url))
                .bearer_auth(token),
        )
        .await
    }

    async fn get(&self, path: &str) -> Value {
        let (status, value) = self.ask(TOKEN, Method::GET, path).await;
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    async fn post(&self, path: &str) -> (StatusCode, Value) {
        self.ask(TOKEN, Method::POST, path).await
    }

    async fn send(&self, path: &str, body: Value) -> (StatusCode, Value) {
        let request = self.http.post(format!("{}{path}", self.url));
        answer(request.bearer_auth(TOKEN).json(&body)).await
    }

    async fn deploy(&self, shell: &str, process: &str, job_type: &str) {
        let url = format!("{}/shells/{shell}/deployments?name={process}.bpmn", self.url);
        let request = self.http.post(url).bearer_auth(TOKEN);
        let request = request.header("content-type", "application/xml");
        let (status, deployed) = answer(request.body(common::bpmn(process, &service(job_type)))).await;
        assert_eq!(status, 200, "{deployed}");
    }

    async fn start(&self, shell: &str, process: &str) -> Value {
        let path = format!("/shells/{shell}/process-instances");
        let (status, started) = self.send(&path, json!({ "processId": process })).await;
        assert!(status.is_success(), "{started}");
        started
    }

    async fn generation(&self, shell: &str) -> String {
        let status = self
            .get(&format!("/shells/{shell}/admin/workflow-runtime/status"))
            .await;
        status["state"]["generationId"].as_str().unwrap().to_owned()
    }

    async fn reason(&self, shell: &str) -> Value {
        let path = format!("/shells/{shell}/admin/workflow-runtime/status");
        self.get(&path).await["state"]["reason"].clone()
    }

    /// Looks until the instance has ended.
    async fn until_finished(&self, shell: &str, key: &Value) {
        let path = format!("/shells/{shell}/process-instances/{}", key.as_str().unwrap());
        let looking = async {
            while self.get(&path).await["subStatus"] != "finished" {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), looking)
            .await
            .expect("it ends");
    }
}

/// The throughput under it is measured by the benchmark `shells`.
#[tokio::test]
async fn l01_a_paused_shell_leaves_its_sibling_alone() {
    let shells = shells().await;
    for shell in ["a", "b"] {
        shells.deploy(shell, "quick", "demo.noop").await;
    }
    shells.post("/shells/a/admin/workflow-runtime/pause").await;
    assert_eq!(shells.reason("a").await, "AdministrativePause");
    assert_eq!(shells.reason("b").await, "None");
    for (what, wanted) in [
        ("ready", 503),
        ("ready/a", 503),
        ("ready/b", 200),
        ("ready/nobody", 404),
    ] {
        let ready = shells
            .http
            .get(shells.url.replace("/api/v1", &format!("/health/{what}")));
        assert_eq!(answer(ready).await.0, wanted, "{what}");
    }
    assert_eq!(shells.start("a", "quick").await["accepted"], true);
    let started = shells.start("b", "quick").await;
    assert_eq!(started["accepted"], Value::Null, "{started}");
    shells.until_finished("b", &started["instanceKey"]).await;
}

#[tokio::test]
async fn l02_a_drained_or_reloaded_shell_leaves_its_sibling_untouched() {
    let shells = shells().await;
    shells.deploy("b", "quick", "demo.noop").await;
    let before = shells.generation("b").await;
    assert_eq!(shells.post("/shells/a/reload").await.0, 200);
    let (status, forced) = shells.post("/shells/a/admin/workflow-runtime/force-drain").await;
    assert_eq!(
        (status.as_u16(), &forced["outcome"]["overallResult"]),
        (200, &json!("Forced"))
    );
    assert_eq!(shells.reason("a").await, "Drain");
    assert_eq!(
        (shells.reason("b").await, shells.generation("b").await),
        (json!("None"), before)
    );
    let started = shells.start("b", "quick").await;
    shells.until_finished("b", &started["instanceKey"]).await;
    let (status, _) = shells.post("/shells/a/reload").await;
    assert_eq!(status, 200, "a drained shell lives again in a new generation");
    assert_eq!(shells.reason("a").await, "None");
}

#[tokio::test]
async fn l03_a_reload_drains_and_what_was_goes_on_in_a_new_generation() {
    let shells = shells().await;
    shells.deploy("a", "job", "external").await;
    shells.deploy("a", "slow", "demo.sleep").await;
    let waiting = shells.start("a", "job").await;
    let before = shells.generation("a").await;
    let (status, answer) = shells.post("/shells/A/reload").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        (&answer["status"], &answer["requestedShellId"]),
        (&json!("Completed"), &json!("a"))
    );
    assert!(answer["reloadedAt"].is_string());
    let part = &answer["shells"][0];
    assert_eq!(
        (
            &part["shellId"],
            &part["outcome"],
            &part["requested"],
            &part["message"]
        ),
        (&json!("a"), &json!("Reloaded"), &json!(true), &Value::Null)
    );
    assert_eq!(
        part["drain"]["overallResult"], "CompletedWithinDeadline",
        "{answer}"
    );
    assert_eq!(part["drain"]["trigger"], "ShellDeactivation");
    let after = shells.generation("a").await;
    assert_ne!(before, after);

    let definitions = shells.get("/shells/a/process-definitions").await;
    assert_eq!(definitions["items"].as_array().unwrap().len(), 2);
    let lease =
        json!({ "type": "external", "worker": "w", "maxJobs": 1, "leaseMs": 60_000, "waitMs": 5_000 });
    let (_, jobs) = shells.send("/shells/a/jobs/activate", lease).await;
    let job = &jobs["jobs"][0];
    let done = json!({ "leaseToken": job["leaseToken"] });
    let path = format!("/shells/a/jobs/{}/complete", job["jobKey"].as_str().unwrap());
    let (status, done) = shells.send(&path, done).await;
    assert_eq!((status.as_u16(), &done["advanced"]), (200, &json!(true)));
    shells.until_finished("a", &waiting["instanceKey"]).await;

    let audit = shells.get("/shells/a/audit").await;
    let rows = audit["items"].as_array().unwrap();
    let reloaded = rows
        .iter()
        .find(|row| row["action"] == "ShellReloaded")
        .expect("an audit entry");
    assert_eq!(
        (
            &reloaded["actor"],
            &reloaded["shell"],
            &reloaded["before"],
            &reloaded["after"]
        ),
        (&json!("operator"), &json!("a"), &json!(before), &json!(after))
    );
}

#[tokio::test]
async fn p10_a_pause_outlives_the_reload_and_nothing_runs_before_the_resume() {
    let shells = shells().await;
    shells.deploy("a", "quick", "demo.noop").await;
    shells.post("/shells/a/admin/workflow-runtime/pause").await;
    let pending = shells.start("a", "quick").await;
    assert_eq!(shells.post("/shells/a/reload").await.0, 200);
    assert_eq!(shells.reason("a").await, "AdministrativePause");
    let key = pending["instanceKey"].as_str().unwrap();
    let instance = shells.get(&format!("/shells/a/process-instances/{key}")).await;
    assert_eq!(instance["subStatus"], "pending");
    shells.post("/shells/a/admin/workflow-runtime/resume").await;
    shells.until_finished("a", &pending["instanceKey"]).await;
}

#[tokio::test]
async fn l04_an_invalid_configuration_leaves_the_old_generation_at_work() {
    let shells = shells().await;
    let before = shells.generation("a").await;
    for (knob, reason) in [
        (INVALID, "is no duration"),
        (WRONG_OPTIONS, "must be longer than 0"),
    ] {
        shells.a.set(knob);
        let (status, refused) = shells.post("/shells/a/reload").await;
        assert_eq!(
            (status.as_u16(), &refused["status"]),
            (422, &json!("RequestedShellFailed")),
            "{refused}"
        );
        assert_eq!(refused["code"], "invalid-configuration");
        let part = &refused["shells"][0];
        assert_eq!(
            (&part["outcome"], &part["drain"]),
            (&json!("InvalidConfiguration"), &Value::Null)
        );
        assert_eq!(part["errors"][0]["key"], "drain-deadline");
        assert!(
            part["errors"][0]["message"].as_str().unwrap().contains(reason),
            "{part}"
        );
        assert_eq!(
            (shells.reason("a").await, shells.generation("a").await),
            (json!("None"), before.clone())
        );
    }
    let audit = shells.get("/shells/a/audit").await;
    assert_eq!(audit["items"], json!([]), "nothing happened");
}

#[tokio::test]
async fn l05_unknown_busy_and_partly_failed_reloads_say_so() {
    let shells = shells().await;
    let (status, unknown) = shells.post("/shells/nobody/reload").await;
    assert_eq!(
        (status.as_u16(), &unknown["status"]),
        (404, &json!("NotFound")),
        "{unknown}"
    );
    assert_eq!(
        (&unknown["code"], &unknown["requestedShellId"]),
        (&json!("shell-not-found"), &json!("nobody"))
    );
    assert_eq!(shells.post("/shells/nobody/retire").await.0, 404);

    // A drain that takes its whole deadline holds the shell.
    shells.deploy("a", "stuck", "demo.sleep").await;
    let body = common::bpmn(
        "stuck",
        &common::around(
            r#"<serviceTask id="work"><extensionElements><zeebe:taskDefinition type="demo.sleep"/><zeebe:taskHeaders>
<zeebe:header key="duration" value="PT60S"/></zeebe:taskHeaders></extensionElements></serviceTask>"#,
        ),
    );
    let deploy = shells
        .http
        .post(format!("{}/shells/a/deployments?name=stuck.bpmn", shells.url));
    let deploy = deploy
        .bearer_auth(TOKEN)
        .header("content-type", "application/xml")
        .body(body);
    assert_eq!(answer(deploy).await.0, 200);
    shells.start("a", "stuck").await;
    let first = shells.post("/shells/a/reload");
    let second = async {
        while shells.reason("a").await != "Drain" {
            tokio::task::yield_now().await;
        }
        (
            shells.post("/shells/a/reload").await,
            shells.post("/shells/a/retire").await,
        )
    };
    let ((status, first), ((busy, second), (retire, _))) = tokio::join!(first, second);
    assert_eq!(status, 200, "{first}");
    assert_eq!(
        first["shells"][0]["drain"]["executionCyclesForceCancelledCount"], 1,
        "{first}"
    );
    assert_eq!(
        (busy.as_u16(), &second["status"], &second["code"]),
        (409, &json!("Busy"), &json!("shell-busy"))
    );
    assert_eq!(retire, 409);

    shells.b.set(INVALID);
    let (status, partial) = shells.post("/shells/reload").await;
    assert_eq!(
        (status.as_u16(), &partial["status"]),
        (207, &json!("Partial")),
        "{partial}"
    );
    assert_eq!(partial["requestedShellId"], Value::Null);
    let outcomes: Vec<_> = partial["shells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| &part["outcome"])
        .collect();
    assert_eq!(outcomes, ["Reloaded", "InvalidConfiguration", "Reloaded"]);
    shells.b.set(SOUND);
    let (status, all) = shells.post("/shells/reload").await;
    assert_eq!(
        (status.as_u16(), &all["status"]),
        (200, &json!("Completed")),
        "{all}"
    );
}

#[tokio::test]
async fn l06_a_shell_retired_before_it_ran_has_nothing_to_drain() {
    let shells = shells().await;
    let knob = Knob::default();
    knob.set(NO_STORE);
    let never = Shell::new("never", knob);
    assert!(never.activate().await.is_err());
    shells.host.add(never);
    let listed = shells.get("/shells").await;
    let never = &listed["items"][3];
    assert_eq!(
        (&never["shellId"], &never["status"]),
        (&json!("never"), &json!("Unavailable")),
        "{listed}"
    );
    let (status, answer) = shells
        .ask(TOKEN, Method::GET, "/shells/never/process-instances")
        .await;
    assert_eq!(
        (status.as_u16(), &answer["code"]),
        (503, &json!("shell-not-active"))
    );
    let (status, retired) = shells.post("/shells/NEVER/retire").await;
    assert_eq!(
        (status.as_u16(), &retired["drain"]),
        (200, &Value::Null),
        "{retired}"
    );
    let (status, retired) = shells.post("/shells/b/retire").await;
    assert_eq!(status, 200, "{retired}");
    assert_eq!(retired["drain"]["trigger"], "ShellDeactivation", "{retired}");
    assert_eq!(shells.post("/shells/b/retire").await.0, 404);
    assert_eq!(shells.get("/shells").await["items"].as_array().unwrap().len(), 2);
    let (status, kept) = shells.post("/shells/default/retire").await;
    assert_eq!((status.as_u16(), &kept["code"]), (409, &json!("default-shell")));
}

#[tokio::test]
async fn l07_one_shell_is_invisible_to_another_in_every_route() {
    let shells = shells().await;
    shells.deploy("a", "job", "external").await;
    let of_a = shells.start("a", "job").await;
    let key = of_a["instanceKey"].as_str().unwrap();
    // B's token and A's shell: as if the shell were not there, whatever the route. Also the default one.
    for route in routes::table() {
        for prefix in ["/shells/a", ""] {
            let path = match route.path.strip_prefix("/shells/{shell}") {
                Some(rest) if prefix.is_empty() => format!("/shells/default{rest}"),
                Some(rest) => format!("{prefix}{rest}"),
                None if route.path.starts_with("/shells") || route.path == "/identity" => continue,
                None => format!("{prefix}{}", route.path),
            };
            let path = path.replace("{key}", key).replace("{name}", "http.api");
            let shell = if path.starts_with("/shells/a") {
                "a"
            } else {
                "default"
            };
            let (status, refused) = shells.ask("token-of-B", route.method.clone(), &path).await;
            let nowhere = path.replacen("/shells/a", "/shells/nowhere", 1);
            assert_eq!(
                (status.as_u16(), &refused["code"]),
                (404, &json!("shell-not-found")),
                "{path}: {refused}"
            );
            if shell == "a" {
                let (status, nothing) = shells.ask("token-of-B", route.method.clone(), &nowhere).await;
                assert_eq!(status, 404);
                let plain = |answer: &Value, shell: &str| {
                    let mut answer = answer.clone();
                    answer["instance"] = Value::Null;
                    answer.to_string().replace(&format!("`{shell}`"), "``")
                };
                assert_eq!(
                    plain(&refused, "a"),
                    plain(&nothing, "nowhere"),
                    "the same words for {path}"
                );
            }
        }
    }
    // With B's own shell, A's things are not there.
    for path in [
        "process-instances",
        "process-definitions",
        "user-tasks",
        "incidents",
        "audit",
        "starters",
    ] {
        let (status, list) = shells
            .ask("token-of-B", Method::GET, &format!("/shells/b/{path}"))
            .await;
        assert_eq!((status.as_u16(), &list["items"]), (200, &json!([])), "{path}");
    }
    for path in [
        format!("process-instances/{key}"),
        format!("process-instances/{key}/history"),
    ] {
        assert_eq!(
            shells
                .ask("token-of-B", Method::GET, &format!("/shells/b/{path}"))
                .await
                .0,
            404
        );
    }
    let (_, listed) = shells.ask("token-of-B", Method::GET, "/shells").await;
    let ids: Vec<_> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["shellId"])
        .collect();
    assert_eq!(ids, ["b"]);
    let metrics = shells
        .http
        .get(shells.url.replace("/api/v1", "/metrics"))
        .bearer_auth("token-of-B");
    let text = metrics.send().await.unwrap().text().await.unwrap();
    assert!(
        text.contains("shell=\"b\"") && !text.contains("shell=\"a\"") && !text.contains("shell=\"default\"")
    );
    let (status, refused) = shells.ask("token-of-B", Method::POST, "/shells/reload").await;
    assert_eq!(
        (status.as_u16(), &refused["code"]),
        (403, &json!("permission-denied"))
    );
    assert_eq!(
        shells.ask("token-of-B", Method::POST, "/shells/B/reload").await.0,
        200
    );
}

#[tokio::test]
async fn a_stop_during_a_reload_begins_no_further_generation() {
    let shells = shells().await;
    let shell = shells.host.shell("a").unwrap();
    let before = shell.runtime().unwrap().generation().to_owned();
    let (outcome, reloaded) = tokio::join!(shell.stop(), shell.reload("test"));
    assert!(reloaded.is_err());
    assert!(outcome.is_some());
    assert_eq!(shell.runtime().unwrap().generation(), before);
    assert!(shell.runtime().unwrap().quiescence().is_draining());
    shell.close().await;
}
