//! `docs/feel.md`: the built-in functions with their parameters, and what the standard has beyond them. The test checks
//! that the page says what the tables say; `TIDEGATE_BLESS=1` writes it.

use std::fmt::Write;

use super::all;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/feel.md");

const INTRODUCTION: &str = "# The built-in functions of FEEL

Made by the test `the_page_of_functions_is_up_to_date` in `crates/expression/src/functions/page.rs`; do not edit it by
hand. Parameters can be given by position or by name; those with `?` can be left out.
";

/// The built-in functions of DMN 1.5, by the chapters of the standard.
const STANDARD: &[(&str, &[&str])] = &[
    (
        "Conversion",
        &[
            "context",
            "date",
            "date and time",
            "duration",
            "number",
            "range",
            "string",
            "time",
            "years and months duration",
        ],
    ),
    ("Boolean", &["not"]),
    (
        "String",
        &[
            "contains",
            "ends with",
            "lower case",
            "matches",
            "replace",
            "split",
            "starts with",
            "string join",
            "string length",
            "substring",
            "substring after",
            "substring before",
            "upper case",
        ],
    ),
    (
        "List",
        &[
            "all",
            "any",
            "append",
            "concatenate",
            "count",
            "distinct values",
            "flatten",
            "index of",
            "insert before",
            "list contains",
            "list replace",
            "max",
            "mean",
            "median",
            "min",
            "mode",
            "product",
            "remove",
            "reverse",
            "stddev",
            "sublist",
            "sum",
            "union",
        ],
    ),
    (
        "Numeric",
        &[
            "abs",
            "ceiling",
            "decimal",
            "even",
            "exp",
            "floor",
            "log",
            "modulo",
            "odd",
            "round down",
            "round half down",
            "round half up",
            "round up",
            "sqrt",
        ],
    ),
    (
        "Date and time",
        &[
            "day of week",
            "day of year",
            "month of year",
            "now",
            "today",
            "week of year",
        ],
    ),
    (
        "Range",
        &[
            "after",
            "before",
            "coincides",
            "during",
            "finished by",
            "finishes",
            "includes",
            "meets",
            "met by",
            "overlaps",
            "overlaps after",
            "overlaps before",
            "started by",
            "starts",
        ],
    ),
    ("Sort", &["sort"]),
    (
        "Context",
        &["context merge", "context put", "get entries", "get value"],
    ),
    ("Miscellaneous", &["is"]),
];

#[test]
fn the_page_of_functions_is_up_to_date() {
    let page = page();
    if std::env::var_os("TIDEGATE_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(PAGE, &page).expect("the page can be written");
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        written == page,
        "docs/feel.md is not up to date: run this test with TIDEGATE_BLESS=1"
    );
}

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut missing = Vec::new();
    let mut listed = Vec::new();
    for (chapter, names) in STANDARD {
        section(&mut page, chapter);
        for name in *names {
            listed.push(*name);
            match super::find(name) {
                Some(_) => line(&mut page, name),
                None => missing.push(*name),
            }
        }
    }
    let mut beyond: Vec<&str> = all().map(|function| function.name).collect();
    beyond.retain(|name| !listed.contains(name));
    beyond.sort_unstable();
    if !beyond.is_empty() {
        section(&mut page, "Beyond the standard");
        beyond.iter().for_each(|name| line(&mut page, name));
    }
    let present = listed.len() - missing.len();
    let missing = if missing.is_empty() {
        "none".to_owned()
    } else {
        missing.join(", ")
    };
    write!(
        page,
        "\n## What is missing\n\nOf the {} functions of DMN 1.5, {present} are there; missing: {missing}. Functions of Java \
         (`external`) are not called.\n\nOf what Camunda 8 has beyond the standard, missing: `assert`, `random number`, `uuid`. An \
         expression gives the same each time it is evaluated with the same values, so that an instance can be replayed: let \
         a worker make what is random. A call of a function that does not exist is told as a warning when the model is \
         deployed, and gives null.\n",
        listed.len()
    )
    .expect("a string takes everything");
    page
}

fn section(page: &mut String, title: &str) {
    write!(page, "\n## {title}\n\n| function | parameters |\n|---|---|\n")
        .expect("a string takes everything");
}

fn line(page: &mut String, name: &str) {
    let signatures = super::find(name).map_or(&[][..], |function| function.signatures);
    let shown: Vec<String> = signatures
        .iter()
        .map(|names| format!("`({})`", names.join(", ")))
        .collect();
    writeln!(page, "| `{name}` | {} |", shown.join(" or ")).expect("a string takes everything");
}
