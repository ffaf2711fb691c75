//! `kill -9` under load, again and again: what was answered is there, and what ended ended once.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::tidegate;
use serde_json::{Value, json};

/// How often the process is killed.
const ROUNDS: usize = 20;
const CLIENTS: usize = 16;
/// Everything is over long before this; a test that hangs says so.
const PATIENCE: Duration = Duration::from_secs(60);

const PROCESSES: &str = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:z="http://camunda.org/schema/zeebe/1.0" targetNamespace="urn:tests">
<message id="m" name="go"><extensionElements><z:subscription correlationKey="=key"/></extensionElements></message>
<process id="tasks" isExecutable="true">
  <startEvent id="s"/><serviceTask id="a"><extensionElements><z:taskDefinition type="demo.noop"/></extensionElements></serviceTask>
  <serviceTask id="b"><extensionElements><z:taskDefinition type="demo.sleep"/><z:taskHeaders><z:header key="duration" value="PT0.005S"/></z:taskHeaders></extensionElements></serviceTask>
  <serviceTask id="c"><extensionElements><z:taskDefinition type="demo.noop"/></extensionElements></serviceTask><endEvent id="e"/>
  <sequenceFlow id="f1" sourceRef="s" targetRef="a"/><sequenceFlow id="f2" sourceRef="a" targetRef="b"/>
  <sequenceFlow id="f3" sourceRef="b" targetRef="c"/><sequenceFlow id="f4" sourceRef="c" targetRef="e"/>
</process>
<process id="waits" isExecutable="true">
  <startEvent id="ws"/><intermediateCatchEvent id="catch"><messageEventDefinition messageRef="m"/></intermediateCatchEvent>
  <intermediateCatchEvent id="nap"><timerEventDefinition><timeDuration>PT0.01S</timeDuration></timerEventDefinition></intermediateCatchEvent><endEvent id="we"/>
  <sequenceFlow id="g1" sourceRef="ws" targetRef="catch"/><sequenceFlow id="g2" sourceRef="catch" targetRef="nap"/><sequenceFlow id="g3" sourceRef="nap" targetRef="we"/>
</process></definitions>"#;

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(arguments: &[String], token: &str, log: &Path) -> Self {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(log)
            .unwrap();
        let mut child = tidegate()
            .args(["serve", "--listen", "127.0.0.1:0", "--demo"])
            .args(arguments)
            .env("TIDEGATE_TOKEN", token)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = loop {
            let line = lines.next().expect("the server says where it listens").unwrap();
            if let Some((_, url)) = line.split_once("listens on ") {
                break url.trim().to_owned();
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url }
    }

    fn kill(mut self) {
        // SIGKILL: nothing of the process runs after it.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// What was answered: instances, and the keys of messages with the instances they are for.
#[derive(Default)]
struct Answered {
    instances: BTreeSet<String>,
    waiting: Vec<(String, String)>,
    published: BTreeSet<String>,
}

struct Client {
    http: reqwest::Client,
    url: String,
    token: String,
}

impl Client {
    fn new(server: &Server, shell: &str, token: &str) -> Self {
        Self {
            http: reqwest::Client::new(),
            url: format!("{}{shell}", server.url),
            token: token.to_owned(),
        }
    }

    async fn post(&self, path: &str, body: &Value) -> Option<(u16, Value)> {
        let request = self
            .http
            .post(format!("{}{path}", self.url))
            .bearer_auth(&self.token)
            .json(body);
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        Some((status, answer.json().await.ok()?))
    }

    async fn get(&self, path: &str) -> Value {
        let request = self
            .http
            .get(format!("{}{path}", self.url))
            .bearer_auth(&self.token);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_kills_lose_nothing_that_was_answered_and_end_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "--data".to_owned(),
        folder.path().join("data").display().to_string(),
    ];
    killed(ROUNDS, &arguments, &[""], folder.path()).await;
}

/// Both shells are under load when the process dies, and their commits shared transactions.
#[tokio::test(flavor = "multi_thread")]
async fn kills_of_two_shells_in_one_file_lose_nothing_of_either() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("tidegate.toml");
    let file = format!(
        "data = {:?}\n[[shells]]\nid = \"billing\"\nnamespace = \"billing\"\n[[shells]]\nid = \"sales\"\nnamespace = \"sales\"\n",
        folder.path().join("data")
    );
    std::fs::write(&config, file).unwrap();
    let arguments = ["--config".to_owned(), config.display().to_string()];
    killed(
        ROUNDS / 3,
        &arguments,
        &["/shells/billing", "/shells/sales"],
        folder.path(),
    )
    .await;
    assert!(!folder.path().join("data/shells").exists(), "there is one file");
}

/// Kills the server under load again and again, then looks at each of the shells.
async fn killed(rounds: usize, arguments: &[String], shells: &[&str], folder: &Path) {
    let log = folder.join("log");
    let token = uuid::Uuid::new_v4().simple().to_string();
    let answered: Vec<_> = shells
        .iter()
        .map(|_| Arc::new(Mutex::new(Answered::default())))
        .collect();
    let serial = Arc::new(AtomicUsize::new(0));
    let mut server = Server::start(arguments, &token, &log);
    for shell in shells {
        deploy(&Client::new(&server, shell, &token)).await;
    }
    for round in 0..rounds {
        let more = (20 + round * 7) / shells.len();
        let goals: Vec<_> = answered
            .iter()
            .map(|answered| answered_count(answered) + more)
            .collect();
        let stop = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let of = number % shells.len();
                let client = Client::new(&server, shells[of], &token);
                let (answered, serial, stop) = (answered[of].clone(), serial.clone(), stop.clone());
                tokio::spawn(async move {
                    while !stop.load(Ordering::Relaxed) {
                        if one_turn(&client, &answered, serial.fetch_add(1, Ordering::Relaxed))
                            .await
                            .is_none()
                        {
                            return;
                        }
                    }
                })
            })
            .collect();
        // Any moment: it moves on with the rounds, always in the middle of the load.
        let began = Instant::now();
        let is_reached =
            |(answered, goal): (&Arc<Mutex<Answered>>, &usize)| answered_count(answered) >= *goal;
        while !answered.iter().zip(&goals).all(is_reached) {
            assert!(
                began.elapsed() < PATIENCE,
                "round {round} does not come to {goals:?} answers"
            );
            tokio::task::yield_now().await;
        }
        server.kill();
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            client.await.unwrap();
        }
        server = Server::start(arguments, &token, &log);
    }
    for (shell, answered) in shells.iter().zip(&answered) {
        let answered = std::mem::take(&mut *answered.lock().unwrap());
        let client = Client::new(&server, shell, &token);
        let (all, recovered) = look(&client, &answered).await;
        eprintln!(
            "kill: `{shell}`: {rounds} kills, {all} instances ({} answered), {recovered} of them recovered from a crash, \
             0 lost, 0 ended twice",
            answered.instances.len()
        );
    }
    server.kill();
}

async fn deploy(client: &Client) {
    let deployed = client
        .http
        .post(format!("{}/deployments?name=p.bpmn", client.url))
        .bearer_auth(&client.token)
        .header("content-type", "application/xml")
        .body(PROCESSES)
        .send()
        .await
        .unwrap();
    assert_eq!(
        deployed.status().as_u16(),
        200,
        "{}",
        deployed.text().await.unwrap()
    );
}

/// Nothing that was answered is lost and nothing ended twice. Gives how many there are, and how many were recovered.
async fn look(client: &Client, answered: &Answered) -> (usize, usize) {
    // Those that wait and whose message was never answered get one now.
    for (instance, key) in &answered.waiting {
        if !answered.published.contains(key) {
            let body = json!({ "name": "go", "correlationKey": key });
            client
                .post("/messages", &body)
                .await
                .unwrap_or_else(|| panic!("no answer for {instance}"));
        }
    }
    let all = ended(client, answered).await;
    for instance in &answered.instances {
        assert!(
            all.contains_key(instance),
            "{instance} was answered and is not there"
        );
    }
    let mut recovered = 0;
    for instance in all.keys() {
        let history = client
            .get(&format!("/process-instances/{instance}/history?limit=1000"))
            .await;
        let events: Vec<&str> = history["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["event"].as_str().unwrap())
            .collect();
        let ends = events
            .iter()
            .filter(|event| ["InstanceCompleted", "InstanceCancelled", "InstanceFaulted"].contains(event))
            .count();
        assert_eq!(ends, 1, "{instance} ended {ends} times: {events:?}");
        recovered += usize::from(events.contains(&"CrashRecovered"));
    }
    (all.len(), recovered)
}

fn answered_count(answered: &Mutex<Answered>) -> usize {
    answered.lock().unwrap().instances.len()
}

/// Starts an instance; every third one waits for a message, which is published. None once the server is gone.
async fn one_turn(client: &Client, answered: &Mutex<Answered>, n: usize) -> Option<()> {
    if !n.is_multiple_of(3) {
        let (status, body) = client
            .post("/process-instances", &json!({ "processId": "tasks" }))
            .await?;
        assert_eq!(status, 200, "{body}");
        answered
            .lock()
            .unwrap()
            .instances
            .insert(body["instanceKey"].as_str()?.to_owned());
        return Some(());
    }
    let key = format!("k{n}");
    let start = json!({ "processId": "waits", "variables": { "key": key } });
    let (status, body) = client.post("/process-instances", &start).await?;
    assert_eq!(status, 200, "{body}");
    let instance = body["instanceKey"].as_str()?.to_owned();
    {
        let mut answered = answered.lock().unwrap();
        answered.instances.insert(instance.clone());
        answered.waiting.push((instance, key.clone()));
    }
    let (status, body) = client
        .post("/messages", &json!({ "name": "go", "correlationKey": key }))
        .await?;
    assert!(matches!(status, 200 | 202), "{status}: {body}");
    answered.lock().unwrap().published.insert(key);
    Some(())
}

/// Every instance with its status, once all have ended. An instance whose start was never answered and that waits for
/// a message nobody sent is left out: its client does not know of it.
async fn ended(client: &Client, answered: &Answered) -> BTreeMap<String, String> {
    let began = Instant::now();
    loop {
        let mut all = BTreeMap::new();
        let mut after = String::new();
        loop {
            let page = client.get(&format!("/process-instances?limit=500{after}")).await;
            for item in page["items"].as_array().unwrap() {
                let key = item["instanceKey"].as_str().unwrap().to_owned();
                all.insert(key, item["status"].as_str().unwrap().to_owned());
            }
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
        let running: Vec<_> = all
            .iter()
            .filter(|(_, status)| *status == "running")
            .map(|(key, _)| key.clone())
            .collect();
        let mine = running
            .iter()
            .filter(|key| answered.instances.contains(*key))
            .count();
        if mine == 0 {
            let unknown_waiting: BTreeSet<_> = running.into_iter().collect();
            let mut all = all;
            let mut settled = true;
            for key in unknown_waiting {
                let detail = client.get(&format!("/process-instances/{key}")).await;
                settled &= detail["processId"] == "waits" && detail["subStatus"] == "suspended";
                all.remove(&key);
            }
            if settled {
                return all;
            }
        }
        assert!(began.elapsed() < PATIENCE, "{mine} instances do not end");
    }
}
