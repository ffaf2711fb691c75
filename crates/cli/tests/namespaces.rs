//! Shells that share one store, on the real binary: what is done to one is not felt by the other.

mod common;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{Serve, example, text, tidegate};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Everything is over long before this; a test that hangs says so.
const PATIENCE: Duration = Duration::from_secs(60);

struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    /// A home whose shells `default`, `billing` and `sales` have the default shell's store in common.
    fn new() -> Self {
        let home = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        home.configure("[[shells]]\nid = \"billing\"\nnamespace = \"Billing\"\n[[shells]]\nid = \"sales\"\nnamespace = \"sales\"\n");
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn configure(&self, shells: &str) {
        let file = format!("store = \"sqlite:{}\"\n{shells}", self.path("all.db").display());
        std::fs::write(self.path("tidegate.toml"), file).unwrap();
    }

    fn serve(&self) -> Serve {
        Serve::start(&["--config", self.path("tidegate.toml").to_str().unwrap()])
    }

    fn deploy(&self, server: &Serve, shell: &str) {
        let file = self.path("hello.bpmn");
        std::fs::copy(example("hello.bpmn"), &file).unwrap();
        server.ok(&["deploy", "--shell", shell, file.to_str().unwrap()]);
    }

    /// What `serve` says of this configuration when it refuses it.
    fn refused(&self, shells: &str) -> String {
        self.configure(shells);
        let output = tidegate()
            .args(["serve", "--config", self.path("tidegate.toml").to_str().unwrap()])
            .current_dir(self.directory.path())
            .output()
            .unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(78), "{stderr}");
        stderr
    }
}

fn generation(server: &Serve, shell: &str) -> Value {
    server.json(&["status", "--shell", shell])["state"]["generationId"].clone()
}

fn count(server: &Serve, what: &str, shell: &str) -> usize {
    server.json(&[what, "--shell", shell])["items"]
        .as_array()
        .unwrap()
        .len()
}

/// A client that starts instances in a shell until it is told to stop, each of which must be answered as begun.
struct Load {
    begun: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl Load {
    fn on(server: &Serve, shell: &str) -> Self {
        let (begun, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let url = format!("{}/api/v1/shells/{shell}/process-instances", server.url);
        let token = server.token.clone().unwrap();
        let task = tokio::spawn({
            let (begun, stop) = (begun.clone(), stop.clone());
            async move {
                let http = reqwest::Client::new();
                while !stop.load(Ordering::Relaxed) {
                    let request = http
                        .post(&url)
                        .bearer_auth(&token)
                        .json(&json!({ "processId": "hello" }));
                    let answer = request.send().await.unwrap();
                    assert_eq!(answer.status().as_u16(), 200, "{}", answer.text().await.unwrap());
                    begun.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self { begun, stop, task }
    }

    /// Waits until so many more were begun.
    async fn goes_on(&self, more: usize) {
        let goal = self.begun.load(Ordering::Relaxed) + more;
        let began = Instant::now();
        while self.begun.load(Ordering::Relaxed) < goal {
            assert!(began.elapsed() < PATIENCE, "the shell beside does not go on");
            tokio::task::yield_now().await;
        }
    }

    async fn end(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap();
        self.begun.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_in_a_shared_store_is_paused_drained_reloaded_and_retired_while_its_sibling_runs() {
    let home = Home::new();
    let server = home.serve();
    home.deploy(&server, "billing");
    home.deploy(&server, "sales");
    assert_eq!(count(&server, "definitions", "default"), 0);
    assert_eq!(count(&server, "definitions", "billing"), 1);
    assert!(home.path("all.db").exists() && !home.path("shells").exists());
    let (default, sales) = (generation(&server, "default"), generation(&server, "sales"));
    let load = Load::on(&server, "sales");

    server.ok(&["start", "--shell", "billing", "hello"]);
    server.ok(&["pause", "--shell", "billing"]);
    load.goes_on(20).await;
    assert_eq!(
        server.json(&["status", "--shell", "billing"])["state"]["reason"],
        "AdministrativePause"
    );
    server.ok(&["resume", "--shell", "billing"]);
    server.ok(&["force-drain", "--shell", "billing"]);
    load.goes_on(20).await;
    for _ in 0..3 {
        let before = generation(&server, "billing");
        assert_eq!(server.json(&["reload", "billing"])["status"], "Completed");
        assert_ne!(generation(&server, "billing"), before);
        load.goes_on(5).await;
    }
    assert_eq!(
        count(&server, "definitions", "billing"),
        1,
        "its data is as it was"
    );
    assert_eq!(server.json(&["retire", "billing"])["outcome"], "Retired");
    load.goes_on(20).await;
    assert_eq!(
        (generation(&server, "default"), generation(&server, "sales")),
        (default, sales)
    );

    assert!(load.end().await >= 75);

    // Still in the file, it comes back with the reload of everything, in the open store.
    assert_eq!(server.json(&["reload"])["status"], "Completed");
    assert_eq!(count(&server, "definitions", "billing"), 1);
    assert_eq!(count(&server, "instances", "billing"), 1);
    server.ok(&["start", "--shell", "billing", "hello"]);
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), 0);

    // All of it is there at the next start, each with its own.
    let server = home.serve();
    assert_eq!(count(&server, "instances", "billing"), 2);
    assert_eq!(count(&server, "instances", "default"), 0);
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), 0);
}

#[test]
fn the_default_shell_may_have_a_namespace_too_and_a_reload_changes_none() {
    let home = Home::new();
    home.configure("namespace = \"main\"\n[[shells]]\nid = \"billing\"\nnamespace = \"billing\"\n");
    let server = home.serve();
    home.deploy(&server, "default");
    assert_eq!(count(&server, "definitions", "billing"), 0);
    home.configure("namespace = \"main\"\n[[shells]]\nid = \"billing\"\nnamespace = \"other\"\n");
    let refused = server.client(&["reload", "billing"]);
    let message = text(&refused.stderr);
    assert!(
        message.contains("cannot change from `billing` to `other`"),
        "{message}"
    );
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), 0);
}

#[test]
fn one_store_and_one_namespace_for_two_shells_is_refused_however_they_are_spelled() {
    let home = Home::new();
    let folder = home.directory.path();
    std::os::unix::fs::symlink(folder, home.path("link")).unwrap();
    let same = home.refused(
        "[[shells]]\nid = \"a\"\nnamespace = \"one\"\n[[shells]]\nid = \"b\"\nnamespace = \"ONE\"\n",
    );
    assert!(
        same.contains("shells.b.store:") && same.contains("is the store of `a`, in the namespace `one`"),
        "{same}"
    );
    for spelled in [
        "all.db",
        "./link/all.db",
        &folder.join("link/all.db").display().to_string(),
    ] {
        let same = home.refused(&format!("[[shells]]\nid = \"a\"\nstore = \"sqlite:{spelled}\"\n"));
        assert!(
            same.contains("is the store of `default`, in the namespace `default`"),
            "{same}"
        );
    }
    let wrong = home.refused("[[shells]]\nid = \"a\"\nnamespace = \"no space\"\n[[shells]]\nid = \"b\"\nstore = \"memory:\"\nnamespace = \"b\"\n");
    assert!(
        wrong.contains("shells.a.namespace: `no space` is no namespace"),
        "{wrong}"
    );
    assert!(
        wrong.contains("shells.b.namespace: `memory:` is nobody else's"),
        "{wrong}"
    );
}

/// A store of a newer version, or a damaged one, is its own shell's trouble.
#[test]
fn a_namespace_that_does_not_open_takes_no_other_shell_down() {
    let home = Home::new();
    let server = home.serve();
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), 0);
    let conn = rusqlite::Connection::open(home.path("all.db")).unwrap();
    conn.execute("UPDATE namespaces SET version = 99 WHERE name = 'billing'", [])
        .unwrap();
    drop(conn);
    let mut server = home.serve();
    let shells = server.json(&["shells"]);
    let status = |at: usize| shells["items"][at]["status"].clone();
    assert_eq!(
        (status(0), status(1), status(2)),
        (
            "Unavailable".into(),
            "AcceptingWork".into(),
            "AcceptingWork".into()
        ),
        "{shells}"
    );
    let log = server.wait_for_log("the shell did not start");
    assert!(log.contains("namespace billing") && log.contains("99"), "{log}");
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), 0);
}
