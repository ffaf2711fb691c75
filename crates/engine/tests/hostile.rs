//! The hostile and borderline files that concern references and behaviour: refused with a diagnostic, or run to a rest
//! within the limits.

mod common;
#[path = "common/cost.rs"]
mod cost;

use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{Host, errors, load};
use serde_json::Value;
use tidegate_model::{CommandKind, Variables};

fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance/invalid");
    if folder.join("manifest.json").is_file() {
        return Some(folder);
    }
    let required = std::env::var_os("TIDEGATE_REQUIRE").is_some_and(|value| value == "1");
    assert!(!required, "the conformance data is required and not there");
    eprintln!("SKIPPED hostile: ../shared/conformance is not there");
    None
}

/// What one file may take at once, with everything that the checks of the host add.
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// A guard against what never ends, in the processor's time. The host does everything twice and looks at the whole state each
/// time; what a file takes of the runtime alone, the runtime's own test of the same files measures.
const MOST_TIME: Duration = Duration::from_secs(60);

#[test]
fn hostile_files_are_refused_or_stay_bounded() {
    let Some(folder) = folder() else { return };
    let manifest = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
    let manifest: Vec<Value> = serde_json::from_str(&manifest).unwrap();
    let mut wrong = Vec::new();
    for entry in &manifest {
        let file = entry["file"].as_str().unwrap_or_default();
        let ours = file.starts_with("hostile/r") || file.starts_with("hostile/z");
        if !ours {
            continue;
        }
        let verdict = entry["verdict"].as_str().unwrap_or_default();
        let (outcome, cost) = cost::of(|| check(&folder.join(file), file, verdict));
        if let Err(reason) = outcome {
            wrong.push(format!("{file}: {reason}"));
        }
        if std::env::var_os("HOSTILE_COSTS").is_some() {
            eprintln!("{file}: {cost:?}");
        }
        if cost.peak > MOST_BYTES || cost.time > MOST_TIME {
            wrong.push(format!("{file}: took {cost:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check(path: &Path, file: &str, verdict: &str) -> Result<(), String> {
    let compiled = load(
        file,
        &std::fs::read(path).map_err(|error| error.to_string())?,
        &[],
    );
    let codes = errors(&compiled.diagnostics);
    let Some(definition) = compiled.definitions.first() else {
        let later = codes.contains(&"element-not-supported");
        return match verdict.starts_with("accept") && !later {
            true => Err(format!("refused: {codes:?}")),
            false if codes.is_empty() => Err("refused without an error".to_owned()),
            false => Ok(()),
        };
    };
    if verdict == "reject" {
        return Err("accepted".to_owned());
    }
    let mut host = Host::new(definition);
    host.checks_prefixes = false;
    if let Err(rejection) = host.command(CommandKind::Start {
        element: None,
        variables: Variables::new(),
    }) {
        return Err(format!("cannot be started: {rejection}"));
    }
    // Whatever waits gets a few turns, so that loops with waits and retries are seen too.
    for _ in 0..50 {
        if let Some(job) = host.jobs().first() {
            let done = CommandKind::CompleteJob {
                job: job.key,
                variables: Variables::new(),
            };
            host.command(done).map_err(|rejection| rejection.to_string())?;
        } else if let Some(timer) = host.next_timer() {
            host.now = host.now.max(timer.due_at);
            let (owner, element, due_at) = (timer.owner, timer.element, timer.due_at);
            let fire = CommandKind::TriggerTimer {
                owner,
                element,
                due_at,
            };
            host.command(fire).map_err(|rejection| rejection.to_string())?;
        }
    }
    if host.instance.ended().is_none() {
        host.command(CommandKind::Cancel)
            .map_err(|rejection| rejection.to_string())?;
    }
    Ok(())
}
