//! The verdict on one file: what the manifest asks for, against what the runtime does with the file.

use std::path::Path;

use tidegate::api::Resource;
use tidegate::model::Diagnostic;

use super::rows::ROWS;
use super::walk::walk;
use crate::support::{self, Stand};

/// Says what is wrong with how `file` is treated.
pub fn judge(folder: &Path, file: &str) -> Result<(), String> {
    let manifest = super::manifest(folder);
    let entry = manifest
        .iter()
        .find(|entry| entry["file"] == file)
        .ok_or("it is not in the manifest")?;
    let bytes = std::fs::read(folder.join(file)).map_err(|error| error.to_string())?;
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let judged = tokio.block_on(async {
        let stand = support::stand().await;
        match entry["set"].as_str() {
            Some("hostile") => hostile(&stand, entry, file, bytes).await,
            _ => reference(&stand, entry, file, bytes).await,
        }
    });
    tokio.shutdown_background();
    judged
}

async fn deploy(stand: &Stand, file: &str, bytes: Vec<u8>) -> Result<(), Vec<Diagnostic>> {
    let resource = Resource {
        name: file.to_owned(),
        bytes,
    };
    match stand.runtime.deploy(vec![resource], None, "invalid").await {
        Ok(_) => Ok(()),
        Err(tidegate::Error::NotDeployable(found)) => Err(found),
        Err(other) => panic!("{other}"),
    }
}

fn list(found: &[Diagnostic]) -> String {
    found.iter().map(|found| format!("\n    {found}")).collect()
}

/// The files about references: each violation of the manifest is named on its line.
async fn reference(
    stand: &Stand,
    entry: &serde_json::Value,
    file: &str,
    bytes: Vec<u8>,
) -> Result<(), String> {
    let deployed = deploy(stand, file, bytes).await;
    let found = deployed.err().unwrap_or_default();
    let errors: Vec<_> = found.iter().filter(|found| found.is_error()).cloned().collect();
    // The files describe collaborations and no process that could run, which is refused too; that is no finding
    // about a reference.
    let about_references = |found: &Diagnostic| REFERENCE_CODES.contains(&&*found.code);
    if entry["verdict"] == "valid" {
        return match errors.iter().any(about_references) {
            true => Err(format!("refused:{}", list(&errors))),
            false => Ok(()),
        };
    }
    let expected: Vec<_> = entry["expected_violations"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    if file.contains(OTHER_FILE) {
        // It names an element of another file, which is not read; that is what has to be said.
        let said = found.iter().any(|found| found.code == "external-reference");
        return said
            .then_some(())
            .ok_or_else(|| format!("accepted in silence:{}", list(&found)));
    }
    for violation in &expected {
        let line = violation["line"].as_u64().unwrap_or_default();
        let named = violation["reference"].as_str().unwrap_or_default();
        let is_named = errors.iter().any(|found| {
            u64::from(found.line) == line
                && found.code == "wrong-reference-kind"
                && found.message.contains(named)
        });
        if !is_named {
            return Err(format!("not named: {violation}; found:{}", list(&found)));
        }
    }
    if expected.is_empty() && !errors.iter().any(|found| found.code == "dangling-reference") {
        return Err(format!("the dangling reference is not named:{}", list(&found)));
    }
    Ok(())
}

/// Refers to an element of another file that is of the wrong kind there. Other files are not read.
const OTHER_FILE: &str = "test-18";

const REFERENCE_CODES: &[&str] = &[
    "wrong-reference-kind",
    "dangling-reference",
    "missing-reference",
    "external-reference",
];

/// The hostile files: refused with one of the diagnostics of its row, or run as the row says.
async fn hostile(stand: &Stand, entry: &serde_json::Value, file: &str, bytes: Vec<u8>) -> Result<(), String> {
    let name = file.rsplit('/').next().unwrap_or(file);
    let row = ROWS
        .iter()
        .find(|row| {
            name.strip_prefix(row.file)
                .is_some_and(|rest| rest.starts_with('_'))
        })
        .ok_or("it has no row")?;
    let verdict = entry["verdict"].as_str().unwrap_or_default();
    // The table cannot say other than the manifest.
    let may_refuse = verdict == "either" || verdict.contains("reject") || verdict.contains("refuse");
    assert!(
        row.refusals.is_empty() || may_refuse,
        "{file}: the manifest says {verdict}"
    );
    assert!(
        row.run.is_none() || verdict != "reject",
        "{file}: the manifest says {verdict}"
    );
    if let Err(found) = deploy(stand, file, bytes).await {
        let is_named = |found: &Diagnostic| found.is_error() && row.refusals.contains(&&*found.code);
        if let Some(without) = found.iter().find(|found| found.hint.is_none()) {
            return Err(format!("no hint: {without}"));
        }
        return match found.iter().any(is_named) {
            true => Ok(()),
            false => Err(format!(
                "refused, and not for {:?}:{}",
                row.refusals,
                list(&found)
            )),
        };
    }
    let Some(run) = &row.run else {
        return Err(format!("accepted, and not refused as {:?}", row.refusals));
    };
    walk(stand, run).await
}
