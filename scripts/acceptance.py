#!/usr/bin/env python3
"""Makes docs/acceptance.md: every id of the acceptance list with the tests that cover it.

A test covers the ids that its name begins with, one after the other: `q03_q04_pause_and_resume` covers Q03 and Q04,
`d14_case_016_two_thousand` covers D14 and case 16.

The requirements and success criteria of the graceful-shutdown specification stand in a table of their own, each with the ids
that show it.

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
    "N": ("Instance control", 9),
    "E": ("Engine life cycle", 12),
    "F": ("Discovery, forget, versions, starters", 11),
    "O": ("Observation", 5),
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
    "Versions, deploy, migration": [174, 175, 176, 179, 180],
    "Retention, memory, metrics": [182, 183, 184, 185, 186],
    "Tenants, authorisation, audit": [189, 191, 192, 194, 196, 197, 198],
}
# What a later issue closes, by the issue's name.
LATER = {
    "ingress: schedules and brokers": [81, 87, 90, 91, 92, 96, 98, 100],
    "fleet: several nodes and the cluster scope": ["R06", "D18", 14, 46, 48, 54, 60, 189],
    "operations: images, packages, metrics": [12, 82],
}
# The requirements (FR) and success criteria (SC) of the graceful-shutdown specification: the ids that show each.
REQUIREMENTS = {
    "FR-001": "Q01 Q07 Q10",
    "FR-002": "Q02 D09",
    "FR-003": "Q04",
    "FR-004": "Q06 Q07",
    "FR-005": "L01 P05",
    "FR-006": "I01 I13",
    "FR-007": "I03 I10",
    "FR-008": "I06 I07",
    "FR-009": "I05 A08",
    "FR-010": "I09 I10",
    "FR-011": "I03",
    "FR-012": "I04 I05 I07",
    "FR-013": "I11 D02 D03 D04",
    "FR-014": "C01 C02",
    "FR-015": "D05 D22",
    "FR-016": "C05 D05 D17",
    "FR-017": "D06 D07",
    "FR-018": "I12",
    "FR-019": "S01 R08",
    "FR-020": "D06",
    "FR-021": "R01 R04",
    "FR-022": "R05 R06",
    "FR-023": "R07",
    "FR-024": "B01",
    "FR-025": "B03",
    "FR-026": "B04",
    "FR-027": "L02 L03",
    "FR-028": "P02 P10",
    "FR-029": "D18",
    "FR-030": "A01 A02 A03",
    "FR-031": "A01 A02 Q06",
    "FR-032": "A01 A05",
    "FR-033": "A06 D10",
    "FR-034": "A07",
    "FR-035": "A08 D17 I05 B03 B04 P01 P02",
    "SC-001": "D05 D22",
    "SC-002": "D06 D14",
    "SC-003": "R01 R02",
    "SC-004": "D04 I11",
    "SC-005": "I11 I13 B02",
    "SC-006": "L01",
    "SC-007": "A06 A07",
    "SC-008": "R05",
    "SC-009": "I12",
    "SC-010": "R05 R08",
}
# How many of either there are.
REQUIREMENT_COUNTS = {"FR": 35, "SC": 10}
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


def requirements(found: dict[str, list[str]], later: dict[str, str], missing: list[str]) -> list[str]:
    """The table of the specification. Every one must be shown by ids that have a test or a later issue."""
    lines = ["| requirement | shown by |", "|---|---|"]
    for kind, count in REQUIREMENT_COUNTS.items():
        for number in range(1, count + 1):
            requirement = f"{kind}-{number:03}"
            ids = REQUIREMENTS.get(requirement, "").split()
            shown = []
            for key in ids:
                if key in found or key in ELSEWHERE:
                    shown.append(key)
                elif key in later:
                    shown.append(f"{key} (closed by a later issue: {later[key]})")
                else:
                    missing.append(f"{requirement}'s {key}")
            if not ids:
                missing.append(requirement)
            lines.append(f"| {requirement} | {', '.join(shown) or '**nothing yet**'} |")
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
    page += ["", "## The graceful-shutdown specification", "", *requirements(found, later, missing)]
    text = "\n".join(page) + "\n"

    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
        print(f"acceptance: {PAGE.relative_to(ROOT)} is written; {len(missing)} ids have no test yet")
        return 0
    covered = [key for key in found if key not in later]
    wrong = [f"{key} has no test and no later issue" for key in missing]
    wrong += [f"{key} has a test by now: take it out of LATER" for key in later if key in found]
    if not PAGE.exists() or PAGE.read_text() != text:
        wrong.append("docs/acceptance.md is not up to date: run scripts/acceptance.py")
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    if not wrong:
        print(f"acceptance: {len(covered)} ids have a test, {len(later)} an issue that closes them; none is missing")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
