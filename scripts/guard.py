#!/usr/bin/env python3
"""Counts the instructions of one round of each hot path, and fails where they grew by a tenth.

    scripts/guard.py            compares with bench/guard/baseline.txt
    scripts/guard.py --bless    writes that file anew

The work is `bench/guard`, built with the profile `guard`. Callgrind counts a short and a long run of each path; the
difference is free of start and preparation. Counts depend on the compiler, so another one than the baseline names is
not compared. What got faster by a tenth is told: bless it, so that it stays.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASELINE = ROOT / "bench/guard/baseline.txt"
# Rounds of the short and of the long run.
SHORT, LONG = 20, 120
GROWTH = 0.10
COLLECTED = re.compile(r"Collected\s*:\s*(\d+)")

HEAD = """\
# Instructions of one round of each hot path, as callgrind counts them on x86_64. `make guard-baseline` writes this
# file; `make guard` and `make test` compare with it.
"""


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"error: `{' '.join(command)}` ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def compiler() -> str:
    told = run("rustc", "-vV").splitlines()
    host = next(line.removeprefix("host: ") for line in told if line.startswith("host: "))
    return f"{told[0]} for {host}"


def build() -> Path:
    run("cargo", "build", "--locked", "-q", "--profile", "guard", "-p", "tidegate-guard")
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "guard/tidegate-guard"


def collected(program: Path, path: str, rounds: int) -> int:
    out = run("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program), path, str(rounds))
    found = COLLECTED.search(out)
    if not found:
        sys.exit(f"error: callgrind counted nothing:\n{out}")
    return int(found[1])


def measure() -> dict[str, int]:
    program = build()
    paths = run(str(program)).split()
    return {path: (collected(program, path, LONG) - collected(program, path, SHORT)) // (LONG - SHORT) for path in paths}


def read() -> tuple[str, dict[str, int]]:
    made_by, counts = "", {}
    for line in BASELINE.read_text().splitlines():
        name, _, value = line.partition("=")
        if line.startswith("#") or not value:
            continue
        if name.strip() == "compiler":
            made_by = value.strip()
        else:
            counts[name.strip()] = int(value)
    return made_by, counts


def bless() -> int:
    lines = [f"{path} = {count}" for path, count in measure().items()]
    BASELINE.write_text(HEAD + "\n".join([f"compiler = {compiler()}", *lines]) + "\n")
    print(BASELINE.read_text(), end="")
    return 0


def compare() -> int:
    made_by, counts = read()
    if made_by != compiler():
        print(f"SKIPPED guard: the baseline was made by {made_by}, this is {compiler()}: `make guard-baseline` first")
        return 1 if os.environ.get("TIDEGATE_REQUIRE") == "1" else 0
    wrong = []
    now = measure()
    for path, count in now.items():
        before = counts.get(path)
        if before is None:
            wrong.append(f"{path} has no baseline: `make guard-baseline` and commit it")
            continue
        change = count / before - 1
        print(f"{path:<14} {before:>9} -> {count:>9} instructions a round ({change:+.1%})")
        if change > GROWTH:
            wrong.append(f"{path} takes {change:.1%} more instructions than before: make it cheaper, or say in the "
                         "change why it must cost that, and run `make guard-baseline`")
        elif change < -GROWTH:
            print(f"{path} became cheaper by more than a tenth: `make guard-baseline` keeps that")
    wrong += [f"{path} is in the baseline and nowhere else" for path in counts.keys() - now.keys()]
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    if not wrong:
        print(f"guard: {len(now)} hot paths, none grew by a tenth")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(bless() if "--bless" in sys.argv[1:] else compare())
