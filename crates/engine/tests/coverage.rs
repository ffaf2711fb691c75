//! `docs/bpmn-coverage.md`: every name of the standard with what is made of it and where that is shown. The test looks
//! for each name in the fixtures and tests and checks that the page says what it found; `TIDEGATE_BLESS=1` writes it.

#[path = "coverage/evidence.rs"]
mod evidence;

use std::fmt::Write;
use std::path::Path;

use evidence::{Evidence, engine_names};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bpmn-coverage.md");

const INTRODUCTION: &str = "# What is executed of BPMN 2.0

Made by the test `the_coverage_page_is_up_to_date` from `crates/engine/tests/coverage/names.txt`; do not edit it by hand.

*executed*: it does what the standard, or the tool whose vocabulary it is, says. *read*: it is kept and its references are
checked, and it changes nothing in a run. *refused*: a deployment with it is refused, with the reason.
*ignored*: it is kept in the file, and nothing looks at it. A name below another
with `@` is an attribute of it. Names of `camunda:` are read in the same way as `operaton:`, `flowable:` and `activiti:`.
The last column names fixtures and tests in which it stands.
";

/// A name with what the list says of it.
struct Row<'a> {
    element: &'a str,
    /// An attribute of the element, or an element that stands in it.
    part: Option<&'a str>,
    verdict: &'a str,
    remark: &'a str,
}

fn row<'a>(line: &'a str, element: &mut &'a str) -> Row<'a> {
    let mut words = line.trim().splitn(3, ' ');
    let name = words.next().unwrap_or_default();
    let (verdict, remark) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_part = line.starts_with(' ');
    if !is_part {
        *element = name;
    }
    Row {
        element,
        part: is_part.then_some(name),
        verdict,
        remark,
    }
}

#[test]
fn the_coverage_page_is_up_to_date() {
    let (evidence, known) = (Evidence::gather(), engine_names());
    let mut page = INTRODUCTION.to_owned();
    let mut counts = std::collections::BTreeMap::new();
    let mut wrong = Vec::new();
    let mut element = "";
    let lines = include_str!("coverage/names.txt").lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(title) = line.strip_prefix("= ") {
            write!(
                page,
                "\n## {title}\n\n| name | verdict | shown in |\n|---|---|---|\n"
            )
            .unwrap();
            continue;
        }
        let Row {
            element,
            part,
            verdict,
            remark,
        } = row(line, &mut element);
        let inner = part.and_then(|part| part.strip_prefix('<')?.strip_suffix('>'));
        let shown = match (inner, part) {
            (Some(inner), _) => evidence.of(inner, None),
            (None, part) => evidence.of(element, part),
        };
        let name = inner.or(part).unwrap_or(element);
        let local = name.rsplit(':').next().unwrap_or(name);
        let label = match (inner, part) {
            (Some(inner), _) => format!("`{element}` / `{inner}`"),
            (None, Some(part)) => format!("`{element}@{part}`"),
            (None, None) => format!("`{element}`"),
        };
        match verdict {
            "executed" if shown.is_empty() => wrong.push(format!("{label} is shown nowhere")),
            "executed" if !known.contains(local) => wrong.push(format!("{label} is not named in the source")),
            "refused" if shown.is_empty() => wrong.push(format!("{label} is refused nowhere")),
            "executed" | "read" | "refused" | "ignored" => {}
            other => wrong.push(format!("{label}: `{other}` is no verdict")),
        }
        *counts.entry(verdict).or_insert(0) += 1;
        let remark = if remark.is_empty() {
            String::new()
        } else {
            format!(": {remark}")
        };
        writeln!(page, "| {label} | {verdict}{remark} | {} |", shown.join(", ")).unwrap();
    }
    let counts: Vec<_> = counts
        .iter()
        .map(|(verdict, count)| format!("{count} {verdict}"))
        .collect();
    write!(page, "\nIn all: {}.\n", counts.join(", ")).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    check(&page);
}

fn check(page: &str) {
    if std::env::var_os("TIDEGATE_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(PAGE, page).unwrap();
    }
    let written = std::fs::read_to_string(Path::new(PAGE)).unwrap_or_default();
    assert!(
        written == page,
        "docs/bpmn-coverage.md is not up to date: run this test with TIDEGATE_BLESS=1"
    );
}
