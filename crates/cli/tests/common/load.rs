//! Clients that start instances and send messages, and what must be true of all that was answered.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::tidegate;

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

/// Where a server runs, and how it is started there.
pub struct Site {
    /// What the command line begins with: a program that becomes the server.
    pub wrapper: Vec<String>,
    /// More arguments of the server.
    pub arguments: Vec<String>,
    /// Environment variables of the server.
    pub environment: Vec<(String, String)>,
    data: PathBuf,
    log: PathBuf,
    token: String,
}

/// A server whose standard error goes to a file, so that nobody has to read it for the server to go on.
pub struct Server {
    child: Child,
    pub url: String,
}

impl Site {
    /// With its data and its log in `folder`.
    pub fn new(folder: &Path) -> Self {
        Self {
            wrapper: Vec::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
            data: folder.join("data"),
            log: folder.join("log"),
            token: uuid::Uuid::new_v4().simple().to_string(),
        }
    }

    /// The same with its data elsewhere.
    pub fn with_data(mut self, data: PathBuf) -> Self {
        self.data = data;
        self
    }

    pub fn data(&self) -> &Path {
        &self.data
    }

    /// All that servers here have said.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The server, ready for requests; its exit where it did not get there.
    pub fn try_start(&self) -> Result<Server, ExitStatus> {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .unwrap();
        let server = tidegate();
        let mut command = match self.wrapper.split_first() {
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments).arg(server.get_program());
                for (name, _) in server.get_envs() {
                    command.env_remove(name);
                }
                command
            }
            None => server,
        };
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--demo", "--data"])
            .arg(&self.data)
            .args(&self.arguments)
            .env("TIDEGATE_TOKEN", &self.token)
            .envs(self.environment.iter().cloned())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in &mut lines {
            if let Some((_, url)) = line.unwrap().split_once("listens on ") {
                let url = url.trim().to_owned();
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(Server { child, url });
            }
        }
        Err(child.wait().unwrap())
    }

    pub fn start(&self) -> Server {
        self.try_start()
            .unwrap_or_else(|status| panic!("the server did not start, {status}: {}", self.log()))
    }

    pub fn client(&self, server: &Server) -> Client {
        Client {
            http: reqwest::Client::new(),
            url: server.url.clone(),
            token: self.token.clone(),
        }
    }
}

impl Server {
    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// SIGKILL: nothing of the process runs after it.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and the exit.
    pub fn stop(self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.end()
    }

    /// Waits for its exit.
    pub fn end(mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "the server does not end");
            std::thread::yield_now();
        }
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One caller of the interface.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    token: String,
}

impl Client {
    /// The same of another shell: its routes begin with this.
    pub fn of(mut self, shell: &str) -> Self {
        self.url += shell;
        self
    }

    /// The status and the body of an answer; none if the server is gone.
    pub async fn post(&self, path: &str, body: &Value) -> Option<(u16, Value)> {
        let request = self
            .http
            .post(format!("{}{path}", self.url))
            .bearer_auth(&self.token)
            .json(body);
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        Some((status, answer.json().await.ok()?))
    }

    pub async fn try_get(&self, path: &str) -> Option<(u16, Value)> {
        let request = self
            .http
            .get(format!("{}{path}", self.url))
            .bearer_auth(&self.token);
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        Some((status, answer.json().await.ok()?))
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.try_get(path).await.expect("the server answers");
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Deploys what the load starts.
    pub async fn deploy(&self) {
        let deployed = self
            .http
            .post(format!("{}/deployments?name=p.bpmn", self.url))
            .bearer_auth(&self.token)
            .header("content-type", "application/xml")
            .body(PROCESSES)
            .send()
            .await
            .unwrap();
        let status = deployed.status().as_u16();
        assert_eq!(status, 200, "{}", deployed.text().await.unwrap());
    }
}

/// What was answered: instances, and the keys of messages with the instances they are for.
#[derive(Default)]
pub struct Answered {
    pub instances: BTreeSet<String>,
    waiting: Vec<(String, String)>,
    published: BTreeSet<String>,
    /// What was refused: its status and code, how often, and the words of the first one.
    pub refused: BTreeMap<(u16, String), (usize, String)>,
}

/// What many clients have been told so far, through however many lives of the server.
#[derive(Clone, Default)]
pub struct Load {
    answered: Arc<Mutex<Answered>>,
    serial: Arc<AtomicUsize>,
}

/// Clients at work.
pub struct Clients {
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Clients {
    /// Waits until each has the answer it waits for, or sees that the server is gone.
    pub async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

impl Load {
    /// `count` clients that go on until they are stopped or the server is gone.
    pub fn begin(&self, client: &Client, count: usize) -> Clients {
        let stop = Arc::new(AtomicBool::new(false));
        let tasks = (0..count)
            .map(|_| {
                let client = Client {
                    http: reqwest::Client::new(),
                    ..client.clone()
                };
                let (load, stop) = (self.clone(), stop.clone());
                tokio::spawn(async move {
                    while !stop.load(Ordering::Relaxed) {
                        let serial = load.serial.fetch_add(1, Ordering::Relaxed);
                        if load.one_turn(&client, serial).await.is_none() {
                            return;
                        }
                    }
                })
            })
            .collect();
        Clients { stop, tasks }
    }

    pub fn count(&self) -> usize {
        self.answered.lock().unwrap().instances.len()
    }

    /// Waits until `more` starts are answered than are now.
    pub async fn more(&self, more: usize) {
        let goal = self.count() + more;
        self.until(&format!("{goal} answers"), |answered| {
            answered.instances.len() >= goal
        })
        .await;
    }

    /// Waits until something is refused with this code; the words it was refused with.
    pub async fn refused(&self, code: &str) -> String {
        let find = |answered: &Answered| {
            let found = answered.refused.iter().find(|((_, its), _)| its == code);
            found.map(|(_, (_, detail))| detail.clone())
        };
        self.until(code, |answered| find(answered).is_some()).await;
        find(&self.answered.lock().unwrap()).unwrap()
    }

    /// Forgets what was refused so far, and waits until something is refused again with this code.
    pub async fn until_refused_more(&self, code: &str) {
        self.answered.lock().unwrap().refused.clear();
        self.refused(code).await;
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Answered) -> bool) {
        let began = Instant::now();
        loop {
            {
                let answered = self.answered.lock().unwrap();
                if is_so(&answered) {
                    return;
                }
                let refused = &answered.refused;
                assert!(
                    began.elapsed() < PATIENCE,
                    "it does not come to {what}: {refused:?}"
                );
            }
            tokio::task::yield_now().await;
        }
    }

    pub fn assert_nothing_refused(&self) {
        let refused = &self.answered.lock().unwrap().refused;
        assert!(refused.is_empty(), "{refused:?}");
    }

    fn refuse(&self, status: u16, body: &Value) {
        assert!(status >= 400, "{status}: {body}");
        let code = body["code"].as_str().unwrap_or_default().to_owned();
        let detail = body["detail"].as_str().unwrap_or_default();
        let mut answered = self.answered.lock().unwrap();
        let entry = answered.refused.entry((status, code)).or_default();
        if entry.0 == 0 {
            detail.clone_into(&mut entry.1);
        }
        entry.0 += 1;
    }

    /// Starts an instance; every third one waits for a message, which is published. None once the server is gone.
    async fn one_turn(&self, client: &Client, serial: usize) -> Option<()> {
        let waits = serial.is_multiple_of(3);
        let key = format!("k{serial}");
        let start = match waits {
            false => json!({ "processId": "tasks" }),
            true => json!({ "processId": "waits", "variables": { "key": key } }),
        };
        let (status, body) = client.post("/process-instances", &start).await?;
        // Taken and waiting for a closed gate is as good as begun.
        if !matches!(status, 200 | 202) {
            self.refuse(status, &body);
            return Some(());
        }
        let instance = body["instanceKey"].as_str()?.to_owned();
        {
            let mut answered = self.answered.lock().unwrap();
            answered.instances.insert(instance.clone());
            if !waits {
                return Some(());
            }
            answered.waiting.push((instance, key.clone()));
        }
        let message = json!({ "name": "go", "correlationKey": key });
        let (status, body) = client.post("/messages", &message).await?;
        match status {
            200 | 202 => _ = self.answered.lock().unwrap().published.insert(key),
            _ => self.refuse(status, &body),
        }
        Some(())
    }

    /// Brings everything to its end on a server that is well, and asserts that all that was answered is there and
    /// every instance ended once. The sum of it, in words.
    pub async fn settle(&self, client: &Client) -> String {
        let answered = std::mem::take(&mut *self.answered.lock().unwrap());
        // Those that wait and whose message was never answered get one now.
        for (instance, key) in &answered.waiting {
            if !answered.published.contains(key) {
                let body = json!({ "name": "go", "correlationKey": key });
                let answer = client.post("/messages", &body).await;
                let (status, body) = answer.unwrap_or_else(|| panic!("no answer for {instance}"));
                assert!(matches!(status, 200 | 202), "{status}: {body}");
            }
        }
        let all = ended(client, &answered).await;
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
        format!(
            "{} instances ({} answered), {recovered} of them recovered from a crash, 0 lost, 0 ended twice",
            all.len(),
            answered.instances.len()
        )
    }
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
        let running: BTreeSet<_> = all
            .iter()
            .filter(|(_, status)| *status == "running")
            .map(|(key, _)| key.clone())
            .collect();
        let mine = running.intersection(&answered.instances).count();
        if mine == 0 {
            let mut settled = true;
            for key in running {
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
