//! Deploying files.

use serde_json::{Value, json};

use super::show;
use crate::args::{Call, Deploy};
use crate::client::http::{Client, Failure, print_diagnostics};
use crate::client::print::list;

pub async fn deploy(call: Call<Deploy>) -> Result<(), Failure> {
    let client = Client::new(&call.connection)?;
    let files = names(&call.request.files);
    let mut form = reqwest::multipart::Form::new();
    for (name, path) in &files {
        let bytes = std::fs::read(path);
        let bytes = bytes.map_err(|error| Failure::Other(format!("`{path}` cannot be read: {error}")))?;
        form = form.part(
            "resources",
            reqwest::multipart::Part::bytes(bytes).file_name(name.clone()),
        );
    }
    let mut answer = client
        .upload(&["deployments"], form)
        .await
        .map_err(|failure| match failure {
            Failure::Problem(mut problem) => {
                lead_to_files(&mut problem["diagnostics"], &files);
                Failure::Problem(problem)
            }
            other => other,
        })?;
    lead_to_files(&mut answer.value["warnings"], &files);
    print_diagnostics(&answer.value["warnings"]);
    show(call.connection.output, &answer, |value| {
        let definitions = json!({ "items": value["definitions"], "next": null });
        let columns = [
            ("process", "processId"),
            ("version", "version"),
            ("definition", "definitionKey"),
            ("name", "name"),
        ];
        list(&definitions, columns);
    })
}

/// Each file's name on the server, which need not know where it lies here, and its path. Two files of one name
/// keep their paths.
fn names(files: &[std::path::PathBuf]) -> Vec<(String, String)> {
    let plain = |path: &std::path::Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let named = files.iter().map(|path| {
        let whole = path.display().to_string();
        let is_alone = files.iter().filter(|other| plain(other) == plain(path)).count() == 1;
        (
            plain(path).filter(|_| is_alone).unwrap_or_else(|| whole.clone()),
            whole,
        )
    });
    named.collect()
}

/// Puts the paths into diagnostics, so that an editor can follow them.
fn lead_to_files(diagnostics: &mut Value, files: &[(String, String)]) {
    for diagnostic in diagnostics.as_array_mut().into_iter().flatten() {
        let found = files
            .iter()
            .find(|(name, _)| diagnostic["resource"] == name.as_str());
        if let Some((_, path)) = found {
            diagnostic["resource"] = path.as_str().into();
        }
    }
}
