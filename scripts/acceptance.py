#!/usr/bin/env python3
"""Makes docs/acceptance.md: every id of the acceptance list with the tests that cover it.

A test covers the ids that its name begins with, one after the other: `q03_q04_pause_and_resume` covers Q03 and Q04,
`d14_case_016_two_thousand` covers D14 and case 16.

  scripts/acceptance.py           writes the page
  scripts/acceptance.py --check   fails when the page is not up to date, or when an id has neither a test nor a row in
                                  LATER, or when a row of LATER has a test by now
"""

import re
import sys
from collections import defaultdict

from metadata import ROOT

PAGE = ROOT / "docs" / "acceptance.md"

# The sections of the list, with the number of their last id.
SECTIONS = {
    "Q": ("Quiescence", 13),
    "P": ("Pause persistence", 11),
    "I": ("Ingress sources", 15),
    "C": ("Execution cycles", 7),
    "D": ("Drain", 23),
    "S": ("Marking interrupted", 6),
    "R": ("Recovery", 13),
    "B": ("Stimulus queue", 9),
    "L": ("Shells", 7),
    "A": ("Administration", 9),
}
# The field cases, by theme.
CASES = {
    "Stop signal, drain order, deadlines": [1, 2, 4, 5, 7, 8, 9, 10, 12, 14, 16],
    "Drain at the HTTP edge": [17, 19, 20, 21, 22, 23, 25],
    "Interrupted work": [27, 29, 31, 32, 33, 35, 36, 37],
    "Crash recovery, orphans, stuck instances": [39, 40, 42, 44, 45, 46, 48, 50, 51, 52],
    "Duplicate execution, leases, fencing": [54, 56, 57, 58, 59, 60, 62],
    "Pause and resume": [64, 65, 67, 69, 70, 71, 73, 75, 76, 77, 79, 81, 82, 83, 85],
    "Timers, schedules, clocks": [87, 88, 90, 91, 92, 94, 96, 98, 100],
    "Storage faults": [118, 120, 122, 124, 125],
    "Cancel, terminate, delete": [126, 127, 129, 130, 131, 133],
    "Retention, memory, metrics": [182, 183, 184, 185, 186],
    "Tenants, authorisation, audit": [189, 191, 192, 194, 196, 197, 198],
}
# What a later issue closes, by the issue's name.
LATER = {
    "instance control": ["R10", 44, 58, 59, 70, 73, 76, 77, 126, 127, 197],
    "ingress: schedules and brokers": [81, 87, 90, 91, 92, 96, 98, 100],
    "fleet: several nodes and the cluster scope": ["R06", "D18", 14, 46, 48, 54, 60, 189],
    "operations: images, packages, metrics": [12, 82],
}
# Not begun with an id, but of another kind than a test function: benchmarks and model checks.
ELSEWHERE = {
    "Q10": "`make bench W=gate` (\"read the state\")",
    "case 185": "`make bench W=leak` (resident memory at each tenth of a million instances)",
}

TEST = re.compile(r"#\[(?:tokio::)?test\b[^\]]*\](?:\s*#\[[^\]]*\])*\s*(?:async\s+)?fn\s+(\w+)")


def leading_ids(name: str) -> list[str]:
    """The ids that a test's name begins with."""
    words = name.split("_")
    ids = []
    while words:
        if re.fullmatch(r"[a-z]\d\d", words[0]):
            ids.append(words.pop(0).upper())
        elif words[0] == "case" and len(words) > 1 and words[1].isdigit():
            ids.append(f"case {int(words[1])}")
            words = words[2:]
        else:
            break
    return ids


def tests() -> dict[str, list[str]]:
    """By id: the tests, each as a path and a name."""
    found = defaultdict(list)
    for file in sorted((ROOT / "crates").rglob("*.rs")):
        inside = file.relative_to(ROOT)
        if "target" in inside.parts:
            continue
        for name in TEST.findall(file.read_text()):
            for key in leading_ids(name):
                found[key].append(f"`{inside}`: `{name}`")
    return found


def key_of(listed: str | int) -> str:
    return listed if isinstance(listed, str) else f"case {listed}"


def table(ids: list[str], found: dict[str, list[str]], later: dict[str, str], missing: list[str]) -> list[str]:
    lines = ["| id | test |", "|---|---|"]
    for key in ids:
        covering = list(found.get(key, []))
        if key in ELSEWHERE:
            covering.append(ELSEWHERE[key])
        if covering:
            lines.append(f"| {key} | {'<br>'.join(covering)} |")
        elif key in later:
            lines.append(f"| {key} | closed by a later issue: {later[key]} |")
        else:
            lines.append(f"| {key} | **none yet** |")
            missing.append(key)
    return lines


def main() -> int:
    found = tests()
    later = {key_of(listed): issue for issue, all_listed in LATER.items() for listed in all_listed}
    missing: list[str] = []
    page = [
        "# Acceptance: every id and the test that covers it",
        "",
        "Made by `scripts/acceptance.py` from the names of the tests; do not edit. Marks of an instance are tested on every",
        "store in `crates/store/tests/marking.rs`; every interleaving of the gate is walked by",
        '`RUSTFLAGS="--cfg loom" cargo test -p tidegate-gate --test gate_loom --release`.',
    ]
    for letter, (title, last) in SECTIONS.items():
        ids = [f"{letter}{number:02}" for number in range(1, last + 1)]
        page += ["", f"## {letter}. {title}", "", *table(ids, found, later, missing)]
    page += ["", "## Field cases"]
    for theme, cases in CASES.items():
        page += ["", f"### {theme}", "", *table([f"case {n}" for n in cases], found, later, missing)]
    text = "\n".join(page) + "\n"

    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
        print(f"acceptance: {PAGE.relative_to(ROOT)} is written; {len(missing)} ids have no test yet")
        return 0
    wrong = [f"{key} has no test and no later issue" for key in missing]
    wrong += [f"{key} has a test by now: take it out of LATER" for key in later if key in found]
    if not PAGE.exists() or PAGE.read_text() != text:
        wrong.append("docs/acceptance.md is not up to date: run scripts/acceptance.py")
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    if not wrong:
        print("acceptance: every id has a test, or an issue that closes it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
