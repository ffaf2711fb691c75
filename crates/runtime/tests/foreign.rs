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

/// What is wrong with each reference that is refused: line and code of every error. Those with one `no-executable-process` are
/// drawings; C.4.0 to C.7.0 are drawings that do not say so.
const REFUSED: [(&str, &[&str]); 17] = [
    ("A.1.0", &["3 no-executable-process"]),
    ("A.2.0", &["3 no-executable-process"]),
    ("A.2.1", &["3 no-executable-process"]),
    ("A.3.0", &["3 no-executable-process"]),
    ("A.4.0", &["3 no-executable-process"]),
    ("A.4.1", &["16 no-executable-process"]),
    ("B.1.0", &["5 no-executable-process"]),
    ("B.2.0", &["5 no-executable-process"]),
    ("C.1.0", &["570 java-delegate"]),
    ("C.1.1", &["252 java-delegate"]),
    ("C.2.0", &["25 no-executable-process"]),
    ("C.3.0", &["336 expression-syntax"]),
    (
        "C.4.0",
        &[
            "139 message-reference-missing",
            "144 message-reference-missing",
            "149 message-reference-missing",
            "252 job-type-missing",
            "271 message-reference-missing",
            "324 loop-without-end",
            "342 message-reference-missing",
            "387 message-reference-missing",
        ],
    ),
    (
        "C.5.0",
        &["290 signal-reference-missing", "424 signal-reference-missing"],
    ),
    (
        "C.6.0",
        &[
            "14 message-reference-missing",
            "19 message-reference-missing",
            "24 timer-missing",
            "42 job-type-missing",
            "52 message-reference-missing",
            "119 job-type-missing",
            "120 job-type-missing",
            "124 job-type-missing",
            "128 job-type-missing",
            "144 job-type-missing",
            "159 job-type-missing",
            "163 job-type-missing",
            "167 job-type-missing",
            "182 job-type-missing",
            "186 job-type-missing",
            "191 job-type-missing",
            "203 timer-missing",
        ],
    ),
    (
        "C.7.0",
        &[
            "136 job-type-missing",
            "149 decision-missing",
            "176 job-type-missing",
            "190 loop-without-cardinality",
        ],
    ),
    ("C.8.0", &["5 no-executable-process"]),
];

/// A reference that is executable: its name, what must be set or corrected for it, and the tests that run it.
type Executable = (&'static str, Option<&'static str>, &'static [fn()]);

/// The references that say they are executable.
const EXECUTABLE: [Executable; 7] = [
    (
        "C.1.0",
        Some("the setting `delegates` names a job type for the Java code `archiveService`"),
        &[runs::the_invoice_of_c10_is_approved_and_archived_by_a_job_in_place_of_java],
    ),
    (
        "C.1.1",
        Some("the setting `delegates` names a job type for the Java code `archiveService`"),
        &[runs::the_invoice_of_c11_follows_its_conditions_in_xpath],
    ),
    (
        "C.3.0",
        Some("the condition is written in FEEL, and the first task begins with the one token that comes"),
        &[runs::the_fridge_of_c30_is_replaced_once_two_places_of_the_file_are_corrected],
    ),
    ("C.8.1", None, &[runs::the_vacation_of_c81_takes_every_way]),
    (
        "C.9.0",
        None,
        &[runs::the_onboarding_of_c90_accepts_and_rejects_by_risk],
    ),
    (
        "C.9.1",
        None,
        &[runs::the_onboarding_of_c90_asks_people_by_c92_and_for_documents_by_c91],
    ),
    (
        "C.9.2",
        None,
        &[runs::the_onboarding_of_c90_asks_people_by_c92_and_for_documents_by_c91],
    ),
];

/// The references, in the order of their names.
fn references(folder: &std::path::Path) -> Vec<Resource> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder.join("miwg/Reference"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "bpmn"))
        .collect();
    files.sort();
    let read = |path: &PathBuf| Resource {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        bytes: std::fs::read(path).unwrap(),
    };
    files.iter().map(read).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_interchange_reference_is_deployed_or_refused_for_a_right_reason() {
    let Some(folder) = conformance("every_interchange_reference_is_deployed_or_refused_for_a_right_reason")
    else {
        return;
    };
    let stand = stand().await;
    let (mut deployed, mut refused) = (0, BTreeMap::new());
    for resource in references(&folder) {
        let name = resource.name.clone();
        match stand.runtime.deploy(vec![resource], None, "test").await {
            Ok(_) => deployed += 1,
            Err(tidegate::Error::NotDeployable(diagnostics)) => {
                let errors: Vec<&Diagnostic> = diagnostics.iter().filter(|d| d.is_error()).collect();
                for error in &errors {
                    assert!(error.line > 0 && error.column > 0, "{name}: {error} has no place");
                    assert!(error.hint.is_some(), "{name}: {error} has no cure");
                }
                let mut found: Vec<(u32, &str)> = errors
                    .iter()
                    .map(|error| (error.line, error.code.as_str()))
                    .collect();
                found.sort_unstable();
                let found: Vec<String> = found
                    .iter()
                    .map(|(line, code)| format!("{line} {code}"))
                    .collect();
                refused.insert(name, found);
            }
            Err(other) => panic!("{name}: {other}"),
        }
    }
    eprintln!("miwg: {deployed} deployed, {} refused", refused.len());
    let expected = REFUSED.map(|(name, found)| {
        (
            name.to_owned(),
            found.iter().map(|one| (*one).to_owned()).collect(),
        )
    });
    assert_eq!(refused, BTreeMap::from(expected));
    assert_eq!(deployed, 4);
}

#[test]
fn every_executable_interchange_reference_runs_to_its_end() {
    let Some(folder) = conformance("every_executable_interchange_reference_runs_to_its_end") else {
        return;
    };
    let says_so = |resource: &Resource| {
        let text = String::from_utf8_lossy(&resource.bytes);
        text.contains("isExecutable=\"true\"")
    };
    let executable: Vec<String> = references(&folder)
        .into_iter()
        .filter(says_so)
        .map(|resource| resource.name)
        .collect();
    assert_eq!(executable, EXECUTABLE.map(|(name, _, _)| name));
    let mut as_written = 0;
    for (name, correction, tests) in EXECUTABLE {
        tests.iter().for_each(|test| test());
        let is_refused = REFUSED.iter().any(|(refused, _)| *refused == name);
        assert_eq!(is_refused, correction.is_some(), "{name}");
        match correction {
            Some(correction) => eprintln!("miwg: {name} runs once corrected: {correction}"),
            None => as_written += 1,
        }
    }
    eprintln!(
        "miwg: {as_written} of {} run as written, {} with a named correction",
        EXECUTABLE.len(),
        EXECUTABLE.len() - as_written
    );
}
