//! Files that others wrote: every interchange reference is deployed, or refused with the reasons that are right for it.

mod support;

use std::collections::BTreeSet;
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
    let (mut deployed, mut refused) = (0, 0);
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
                refused += 1;
                let errors: Vec<&Diagnostic> = diagnostics.iter().filter(|d| d.is_error()).collect();
                for error in &errors {
                    assert!(error.line > 0 && error.column > 0, "{name}: {error} has no place");
                    assert!(error.hint.is_some(), "{name}: {error} has no cure");
                }
                let codes: BTreeSet<&str> = errors.iter().map(|error| error.code.as_str()).collect();
                eprintln!("{name}: {codes:?}");
            }
            Err(other) => panic!("{name}: {other}"),
        }
    }
    eprintln!("miwg: {deployed} deployed, {refused} refused");
    assert_eq!(deployed + refused, 21);
}
