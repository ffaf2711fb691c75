//! Shells of a configuration file, on the real binary: reloaded by command and by signal.

mod common;

use std::path::{Path, PathBuf};

use common::{Serve, text, tidegate};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A home with a configuration of the shells `default` and `billing`.
struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let home = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        std::fs::write(home.path("billing-token"), "a-token-of-billing-alone\n").unwrap();
        home.configure("30s", "");
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn configure(&self, deadline: &str, more: &str) {
        let file = format!(
            "data = {data:?}\ndrain-deadline = \"{deadline}\"\n\n[[shells]]\nid = \"Billing\"\nmax-live-cycles = 100\n\
             tokens = [{{ name = \"clerk\", file = {token:?}, permissions = [\"*\"] }}]\n{more}\n",
            data = self.path("data"),
            token = self.path("billing-token"),
        );
        std::fs::write(self.path("tidegate.toml"), file).unwrap();
    }

    fn serve(&self) -> Serve {
        let config = self.path("tidegate.toml");
        Serve::start(&["--config", config.to_str().unwrap()])
    }
}

fn generation(server: &Serve, shell: &str) -> String {
    let status = server.json(&["status", "--shell", shell]);
    status["state"]["generationId"].as_str().unwrap().to_owned()
}

fn deploy(server: &Serve, home: &Path, shell: &str) {
    let file = home.join("hello.bpmn");
    std::fs::copy(common::example("hello.bpmn"), &file).unwrap();
    server.ok(&["deploy", "--shell", shell, file.to_str().unwrap()]);
}

#[test]
fn shells_of_the_file_have_their_own_data_and_tokens() {
    let home = Home::new();
    let server = home.serve();
    assert!(home.path("data/shells/billing/tidegate.db").exists());
    deploy(&server, home.directory.path(), "billing");
    assert_eq!(
        server.json(&["definitions", "--shell", "BILLING"])["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(server.json(&["definitions"])["items"], json!([]));
    let clerk = |arguments: &[&str]| {
        let mut command = tidegate();
        command.args(arguments).args(["--server", &server.url]);
        command
            .env("TIDEGATE_TOKEN", "a-token-of-billing-alone")
            .output()
            .unwrap()
    };
    assert!(clerk(&["status", "--shell", "billing"]).status.success());
    let refused = clerk(&["status"]);
    assert!(!refused.status.success() && text(&refused.stderr).contains("shell-not-found"));
    let listed = text(&clerk(&["shells", "-o", "json"]).stdout);
    assert!(
        listed.contains("billing") && !listed.contains("\"default\""),
        "{listed}"
    );
    server.signal(Signal::TERM);
    let ended = server.end();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    let report = ended.report();
    assert_eq!(report["outcome"]["overallResult"], "CompletedWithinDeadline");
    assert_eq!(
        report["shells"]["billing"]["overallResult"],
        "CompletedWithinDeadline"
    );
}

#[test]
fn reload_retire_and_sighup_follow_the_file() {
    let home = Home::new();
    let mut server = home.serve();
    deploy(&server, home.directory.path(), "billing");
    let before = (generation(&server, "default"), generation(&server, "billing"));
    let reloaded = server.json(&["reload", "billing"]);
    assert_eq!(reloaded["status"], "Completed", "{reloaded}");
    let after = (generation(&server, "default"), generation(&server, "billing"));
    assert!(before.0 == after.0 && before.1 != after.1);
    assert_eq!(
        server.json(&["definitions", "--shell", "billing"])["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );

    // A mistake of one shell is its own.
    home.configure("30s", "drain-deadline = \"soon\"");
    let refused = server.client(&["reload", "billing"]);
    let message = text(&refused.stderr);
    assert!(
        !refused.status.success() && message.contains("shells.Billing.drain-deadline"),
        "{message}"
    );
    assert!(message.contains("invalid-configuration"), "{message}");
    assert_eq!(
        generation(&server, "billing"),
        after.1,
        "the old generation goes on"
    );
    server.signal(Signal::HUP);
    let log = server.wait_for_log("SIGHUP: reloaded");
    assert!(log.contains("Partial"), "{log}");
    assert_ne!(generation(&server, "default"), after.0);
    assert_eq!(generation(&server, "billing"), after.1);

    // A shell that is new in the file begins with the reload of everything.
    home.configure("30s", "\n[[shells]]\nid = \"second\"\nstore = \"memory:\"");
    let all = server.json(&["reload"]);
    let ids: Vec<_> = all["shells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["shellId"].as_str().unwrap())
        .collect();
    assert_eq!(
        (all["status"].as_str(), ids),
        (Some("Completed"), vec!["billing", "default", "second"]),
        "{all}"
    );
    let retired = server.json(&["retire", "second"]);
    assert_eq!(retired["outcome"], "Retired");
    let shells = server.json(&["shells"]);
    assert_eq!(shells["items"].as_array().unwrap().len(), 2);
    let none = server.client(&["reload", "nobody"]);
    assert!(
        text(&none.stderr).contains("shell-not-found"),
        "{}",
        text(&none.stderr)
    );
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), 0);
}

#[test]
fn a08_all_that_is_wrong_with_shells_and_issuers_is_listed_with_its_keys() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("tidegate.toml");
    let file = "drain-deadline = \"0s\"\nowners = 0\n\
         [oidc]\nissuer = \"http://elsewhere.example\"\naudience = [\"a\"]\nalgorithms = [\"HS256\"]\n\
         permissions = { ops = [\"everything\"] }\n\
         [[tokens]]\nname = \"nobody\"\nfile = \"/dev/null\"\npermissions = [\"*\"]\ntenants = []\n\
         [[shells]]\nid = \"a\"\nlisten = \"127.0.0.1:1\"\npersist-reserve = \"1ms\"\n\
         [[shells]]\nid = \"A\"\n[[shells]]\nid = \"no space\"\n[[shells]]\nstore = \"memory:\"\n\
         [[shells]]\nid = \"b\"\nstore = \"sqlite:x.db\"\n[[shells]]\nid = \"c\"\nstore = \"sqlite:x.db\"\n";
    std::fs::write(&config, file).unwrap();
    let output = tidegate()
        .args(["serve", "--config", config.to_str().unwrap()])
        .output()
        .unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(78), "{stderr}");
    for line in [
        "drain-deadline: must be longer",
        "owners: must be greater",
        "oidc.algorithms: `HS256`",
        "oidc.permissions.ops: no permission `everything`",
        "shells.a.listen: concerns the whole host",
        "shells.a.persist-reserve: must be at least",
        "shells.A.id: is taken",
        "shells.no space.id: `no space` is no shell id",
        "shells.3: has no `id`",
        "shells.c.store: `sqlite:x.db` is the store of `b`",
    ] {
        assert!(stderr.contains(line), "`{line}` is missing:\n{stderr}");
    }
}

#[test]
fn a_shell_whose_store_is_held_takes_nobody_down_and_a_reload_tries_again() {
    let home = Home::new();
    let held = home.path("held");
    let other = Serve::start(&["--data", held.to_str().unwrap()]);
    let store = format!("sqlite:{}", held.join("tidegate.db").display());
    home.configure("30s", &format!("\n[[shells]]\nid = \"late\"\nstore = {store:?}"));
    let server = home.serve();
    let shells = server.json(&["shells"]);
    let late = |shells: &Value| shells["items"][2]["status"].clone();
    assert_eq!(late(&shells), "Unavailable", "{shells}");
    assert_eq!(server.json(&["shells"])["items"][1]["status"], "AcceptingWork");
    other.signal(Signal::TERM);
    assert_eq!(other.end().code(), 0);
    assert_eq!(server.json(&["reload", "late"])["status"], "Completed");
    assert_eq!(late(&server.json(&["shells"])), "AcceptingWork");
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), 0);
}
