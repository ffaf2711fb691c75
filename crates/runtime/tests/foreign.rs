//! Files that others wrote: every interchange reference is deployed, or refused with the reasons that are right for it.

#[path = "foreign/runs.rs"]
mod runs;
mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;

use support::stand;
use tidegate::api::Resource;
use tidegate::model::Diagnostic;

fn conformance(test: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED {test}: ../shared/conformance is absent");
    assert!(
        std::env::var("TIDEGATE_REQUIRE").as_deref() != Ok("1"),
        "../shared/conformance is required here"
    );
    None
}

/// What is wrong with each reference that is refused, in the order of the codes. Most are drawings; the executable ones
/// are C.1.0 and C.1.1 (Java code), C.3.0 (a condition in no language, an empty sub-process), and those deployed.
const REFUSED: [(&str, &[&str]); 17] = [
    ("A.1.0", &["no-executable-process"]),
    ("A.2.0", &["no-executable-process"]),
    ("A.2.1", &["no-executable-process"]),
    ("A.3.0", &["no-executable-process"]),
    ("A.4.0", &["no-executable-process"]),
    ("A.4.1", &["no-executable-process"]),
    ("B.1.0", &["no-executable-process"]),
    ("B.2.0", &["no-executable-process"]),
    ("C.1.0", &["java-delegate"]),
    ("C.1.1", &["java-delegate"]),
    ("C.2.0", &["no-executable-process"]),
    ("C.3.0", &["expression-syntax", "sub-process-without-start"]),
    (
        "C.4.0",
        &[
            "job-type-missing",
            "loop-without-end",
            "message-reference-missing",
        ],
    ),
    ("C.5.0", &["signal-reference-missing"]),
    (
        "C.6.0",
        &["job-type-missing", "message-reference-missing", "timer-missing"],
    ),
    (
        "C.7.0",
        &["decision-missing", "job-type-missing", "loop-without-cardinality"],
    ),
    ("C.8.0", &["no-executable-process"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_interchange_reference_is_deployed_or_refused_for_a_right_reason() {
    let Some(folder) = conformance("every_interchange_reference_is_deployed_or_refused_for_a_right_reason")
    else {
        return;
    };
    let stand = stand().await;
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder.join("miwg/Reference"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let (mut deployed, mut refused) = (0, BTreeMap::new());
    for path in files
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "bpmn"))
    {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let resource = Resource {
            name: name.clone(),
            bytes: std::fs::read(path).unwrap(),
        };
        match stand.runtime.deploy(vec![resource], None, "test").await {
            Ok(_) => deployed += 1,
            Err(tidegate::Error::NotDeployable(diagnostics)) => {
                let errors: Vec<&Diagnostic> = diagnostics.iter().filter(|d| d.is_error()).collect();
                for error in &errors {
                    assert!(error.line > 0 && error.column > 0, "{name}: {error} has no place");
                    assert!(error.hint.is_some(), "{name}: {error} has no cure");
                }
                let mut codes: Vec<String> = errors.iter().map(|error| error.code.clone()).collect();
                codes.sort();
                codes.dedup();
                refused.insert(name.trim_end_matches(".bpmn").to_owned(), codes);
            }
            Err(other) => panic!("{name}: {other}"),
        }
    }
    eprintln!("miwg: {deployed} deployed, {} refused", refused.len());
    let expected = REFUSED.map(|(name, codes)| {
        (
            name.to_owned(),
            codes.iter().map(|code| (*code).to_owned()).collect(),
        )
    });
    assert_eq!(refused, BTreeMap::from(expected));
    assert_eq!(deployed, 4);
}
