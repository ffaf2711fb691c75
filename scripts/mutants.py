#!/usr/bin/env python3
"""Runs the mutants of many files out of one build: `make mutants PART=runtime`.

cargo-mutants says what can be changed (`--list --json`) and what means nothing (.cargo/mutants.toml). Here all changes
are compiled together, into a copy of the tree below target/mutants: a function gets one body for each of its mutants, and
an environment variable says which body runs. What does not compile is left out, and counted. Then every test runs
once by itself and tells which of these functions it reaches; a mutant is given the tests that reach it, those first
that killed its neighbours, until one fails.

    scripts/mutants.py NAME [--test=TEST ...] GLOB ...

The tests of a package have to notice what is changed in it: its unit tests and those named, or all of them. ONLY=REGEX
judges only the mutants whose name matches, JOBS is how many run at a time. The last line has the counts; above it stands
what survived, and everything by name is in target/mutants/NAME/report.json.
"""

import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "target" / "mutants"
# A test that takes longer than this many times its own time, and some seconds, waits in vain.
PATIENCE, PATIENCE_SECONDS = 10, 20

SWITCH = """
#[allow(warnings, clippy::all)]
pub(crate) mod mutant_switch {
    use std::io::Write as _;

    /// Which mutant runs. Tells that `function` was reached, where that is asked for.
    pub(crate) fn active(function: u32) -> u32 {
        static ACTIVE: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
        static REACHED: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
        static TOLD: std::sync::Mutex<Vec<u32>> = std::sync::Mutex::new(Vec::new());
        if let Some(path) = REACHED.get_or_init(|| std::env::var("MUTANTS_REACHED").ok()) {
            let mut told = TOLD.lock().unwrap();
            if !told.contains(&function) {
                told.push(function);
                let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
                file.write_all(format!("{function}\\n").as_bytes()).unwrap();
            }
        }
        *ACTIVE.get_or_init(|| std::env::var("MUTANT").ok().and_then(|id| id.parse().ok()).unwrap_or(0))
    }
}
"""


@dataclass
class Mutant:
    id: int
    name: str
    package: str
    file: str
    function: tuple
    """Its file and span."""
    number: int
    """The function's."""
    span: tuple
    replacement: str
    is_body: bool
    outcome: str = ""
    by: str = ""


@dataclass
class Test:
    name: str
    package: str
    program: str
    folder: Path
    seconds: float = 0.0
    reached: set = field(default_factory=set)


def main() -> int:
    began = time.monotonic()
    name = sys.argv[1]
    chosen = [argument for argument in sys.argv[2:] if argument.startswith("--test=")]
    files = [argument for argument in sys.argv[2:] if argument not in chosen]
    only = re.compile(os.environ.get("ONLY", ""))
    pool = ThreadPoolExecutor(int(os.environ.get("JOBS", "4")))
    place, tree = PLACE / name, PLACE / "tree"
    place.mkdir(parents=True, exist_ok=True)
    mutants, explained = listed(files)
    packages = sorted({mutant.package for mutant in mutants})
    copy_tree(tree, {mutant.file for mutant in mutants} | {library_of(package) for package in packages})
    rejected = compile_together(tree, mutants, packages, place / "unviable.json")
    programs = build_tests(tree, packages, chosen)
    say(f"{len(mutants)} mutants, {len(rejected)} do not compile; built after {time.monotonic() - began:.0f} s")
    tests = [test for found in pool.map(tests_of, programs) for test in found]
    failing = [test for test, is_well in zip(tests, list(pool.map(run_alone, tests))) if not is_well]
    for test in failing:
        say(f"fails without any change, and is left out: {test.name}")
        tests.remove(test)
    say(f"{len(tests)} tests, {sum(test.seconds for test in tests):.0f} s one after the other")
    mutants = [mutant for mutant in mutants if only.search(mutant.name)]
    explained = [name for name in explained if only.search(name)]
    killers: dict = {}
    list(pool.map(lambda mutant: judge(mutant, mutant.id not in rejected, tests, killers), mutants))
    report = [{"name": m.name, "outcome": m.outcome, "by": m.by} for m in mutants]
    report += [{"name": name, "outcome": "explained", "by": ".cargo/mutants.toml"} for name in explained]
    (place / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    survivors = [m for m in mutants if m.outcome in ("missed", "unreached")]
    say("survived:" if survivors else "no survivor")
    for mutant in survivors:
        say(f"  {mutant.name} ({mutant.outcome})")
    count = {of: sum(m.outcome == of for m in mutants) for of in ("caught", "timeout", "unviable")}
    say(
        f"mutants {len(mutants) + len(explained)}: caught {count['caught']}, timeout {count['timeout']}, "
        f"unviable {count['unviable']}, explained {len(explained)}, survived {len(survivors)} "
        f"({time.monotonic() - began:.0f} s)"
    )
    return 1 if survivors or failing else 0


def judge(mutant: Mutant, is_viable: bool, tests: list, killers: dict) -> None:
    """Gives the mutant to the tests that reach it: first to quick ones, and to those that killed its neighbours."""
    if not is_viable:
        mutant.outcome = "unviable"
        return
    reaching = [test for test in tests if mutant.number in test.reached and test.package == mutant.package]
    kills = killers.setdefault(mutant.file, {})
    mutant.outcome = "missed" if reaching else "unreached"
    for test in sorted(reaching, key=lambda test: (test.seconds / (1 + kills.get(test.name, 0)), test.name)):
        if outcome := run(test, mutant.id):
            mutant.outcome, mutant.by = outcome, test.name
            kills[test.name] = kills.get(test.name, 0) + 1
            break
    how = f"by {mutant.by}" if mutant.by else f"by any of {len(reaching)} tests"
    say(f"{mutant.outcome:<9} {mutant.name} {how}")


def say(text: str) -> None:
    # In one piece: several say something at once.
    print(f"{text}\n", end="", flush=True)


# --- what there is to change ---


def listed(files: list) -> tuple:
    """The mutants, and the names of those that are explained."""
    kept, every = listing(files), listing(files, "--no-config")
    names, numbers = {entry["name"] for entry in kept}, {}
    for entry in kept:
        if not entry.get("function"):
            say(f"not judged: it is in no function, so nothing can switch it: {entry['name']}")
    inside = [entry for entry in kept if entry.get("function")]
    mutants = [mutant_of(id, entry, numbers) for id, entry in enumerate(inside, 1)]
    if not mutants:
        sys.exit("error: there is nothing to change in these files")
    return mutants, [entry["name"] for entry in every if entry["name"] not in names]


def listing(files: list, *more: str) -> list:
    command = ["cargo", "mutants", "--list", "--json", *more]
    for pattern in files:
        command += ["-f", pattern]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def mutant_of(id: int, entry: dict, numbers: dict) -> Mutant:
    function = (entry["file"], span_of(entry["function"]["span"]))
    return Mutant(
        id=id,
        name=entry["name"],
        package=entry["package"],
        file=entry["file"],
        function=function,
        number=numbers.setdefault(function, len(numbers) + 1),
        span=span_of(entry["span"]),
        replacement=entry["replacement"],
        is_body=entry["genre"] == "FnValue",
    )


def span_of(span: dict) -> tuple:
    return tuple((span[end]["line"], span[end]["column"]) for end in ("start", "end"))


# --- one tree with all of them ---


def copy_tree(tree: Path, woven_files: set) -> None:
    """Files that are the same keep their times, so that only what changed is built again. Others are written later."""
    listing = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    names = {name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()}
    for name in names - woven_files:
        write(tree / name, (ROOT / name).read_bytes(), (ROOT / name).stat().st_mode)
    for there in tree.rglob("*"):
        if there.is_file() and str(there.relative_to(tree)) not in names:
            there.unlink()


def write(path: Path, content: bytes, mode: int = 0o644) -> None:
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)


def compile_together(tree: Path, mutants: list, packages: list, known: Path) -> set:
    """Writes all mutants that compile into the tree. Answers the others, and keeps them for the next time."""
    sources = {file: (ROOT / file).read_text() for file in sorted({m.file for m in mutants})}
    before = json.loads(known.read_text()) if known.exists() else {}
    did_not = {name for file, (text, names) in before.items() if sources.get(file) == text for name in names}
    rejected = {mutant.id for mutant in mutants if mutant.name in did_not}
    for package in packages:
        lib = library_of(package)
        text = f"#![allow(warnings, unused_must_use, clippy::all)] {(ROOT / lib).read_text()}{SWITCH}"
        write(tree / lib, text.encode())
    while True:
        owners = {}
        for file, source in sources.items():
            of_file = [m for m in mutants if m.file == file and m.id not in rejected]
            text, owners[file] = woven(source, of_file)
            write(tree / file, text.encode())
        fresh = set()
        others = []
        flags = [flag for package in packages for flag in ("-p", package)]
        for message in cargo(tree, "check", "--lib", *flags):
            at = [owners.get(span["file_name"], {}).get(span["line_start"]) for span in all_spans(message)]
            if blamed := next(filter(None, at), None):
                fresh.add(blamed)
            else:
                others.append(message["rendered"])
        if not fresh and not others:
            names = {file: [m.name for m in mutants if m.file == file and m.id in rejected] for file in sources}
            known.write_text(json.dumps({file: (sources[file], names[file]) for file in sources}))
            return rejected
        if not fresh:
            sys.exit("error: the tree with all mutants does not compile:\n" + "\n".join(others))
        rejected |= fresh


def all_spans(message: dict) -> list:
    """Where an error is: what it points at, or, if that is no mutant, what it speaks of."""
    return sorted(message["spans"], key=lambda span: not span["is_primary"])


def library_of(package: str) -> str:
    targets = next(of["targets"] for of in metadata() if of["name"] == package)
    lib = next(target for target in targets if "lib" in target["kind"])
    return str(Path(lib["src_path"]).relative_to(ROOT))


def woven(text: str, mutants: list) -> tuple:
    """The file with a body for each mutant, and the mutant of each line that belongs to one."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def place(position: tuple) -> int:
        return starts[position[0] - 1] + position[1] - 1

    out, done, owners, line = [], 0, {}, 1

    def put(piece: str, owner: int = 0) -> None:
        nonlocal line
        out.append(piece)
        if owner:
            owners.update({at: owner for at in range(line, line + piece.count("\n") + 1)})
        line += piece.count("\n")

    functions: dict = {}
    for mutant in mutants:
        functions.setdefault(mutant.function, []).append(mutant)
    for function, its in sorted(functions.items(), key=lambda item: item[0][1]):
        begin, end = (place(position) for position in function[1])
        if begin < done:
            sys.exit(f"error: a function inside a function, in {function[0]}")
        opened = body_of(text, begin, end)
        put(text[done:begin])
        # What asks a variable is no constant.
        put(re.sub(r"\bconst\s+((?:unsafe\s+)?fn\b)", r"\1", text[begin:opened]))
        original = text[opened:end]
        ids = " | ".join(str(mutant.id) for mutant in its)
        put(f"{{ match crate::mutant_switch::active({its[0].number}) {{\n")
        put(f"id if !matches!(id, {ids}) => {original}\n")
        for mutant in its:
            first, last = (place(position) for position in mutant.span)
            changed = f"{{ {mutant.replacement} }}" if mutant.is_body else (
                text[opened:first] + mutant.replacement + text[last:end]
            )
            put(f"{mutant.id} => {changed}\n", mutant.id)
        put("_ => unreachable!() } }")
        done = end
    put(text[done:])
    return "".join(out), owners


TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|b?r(?P<hash>#*)\".*?\"(?P=hash)|b?\"(?:\\.|[^\"\\])*\"|b?'(?:\\[^u]|\\u\{[^}]*\}|\\x..|[^\\'])'|[{]",
    re.DOTALL,
)


def body_of(text: str, begin: int, end: int) -> int:
    """Where the body opens: at the first brace after the function's name."""
    at = re.compile(r"\bfn\s").search(text, begin, end)
    for token in TOKEN.finditer(text, at.end(), end):
        if token.group() == "{":
            return token.start()
    sys.exit(f"error: no body in {text[begin:end]}")


# --- building and running ---


def environment(**more: str) -> dict:
    # A folder of its own: cargo takes the copy for the tree itself, and would take the one's artifacts for the other's.
    return {**os.environ, "CARGO_TARGET_DIR": str(PLACE / "build"), "CARGO_PROFILE_DEV_DEBUG": "0", **more}


def cargo(tree: Path, *command: str) -> list:
    """The errors of a build."""
    told = [m["message"] for m in messages(tree, *command) if m["reason"] == "compiler-message"]
    return [message for message in told if message["level"] == "error" and message["spans"]]


def messages(tree: Path, *command: str) -> list:
    done = subprocess.run(
        ["cargo", *command, "--locked", "--message-format", "json"],
        cwd=tree,
        env=environment(),
        capture_output=True,
        text=True,
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode and not any(m["reason"] == "compiler-message" for m in found):
        sys.exit(done.stderr)
    return found


def build_tests(tree: Path, packages: list, chosen: list) -> list:
    """The test programs: package, path and the folder they run in."""
    flags = [flag for package in packages for flag in ("-p", package)]
    found = messages(tree, "test", "--no-run", *(["--lib", *chosen] if chosen else ["--tests"]), *flags)
    if not any(message["reason"] == "build-finished" and message["success"] for message in found):
        sys.exit("error: the tests do not build; run them without any change first")
    names = {str(tree / manifest): name for name, manifest in manifests().items()}
    return [
        (names[message["manifest_path"]], message["executable"], Path(message["manifest_path"]).parent)
        for message in found
        if message["reason"] == "compiler-artifact" and message["executable"] and message["profile"]["test"]
    ]


def tests_of(program: tuple) -> list:
    package, path, folder = program

    def names(*which: str) -> list:
        command = [path, "--list", "--format", "terse", *which]
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        return [line.removesuffix(": test") for line in found if line.endswith(": test")]

    skipped = set(names("--ignored"))
    return [Test(name, package, path, folder) for name in names() if name not in skipped]


def run_alone(test: Test) -> bool:
    """Runs a test without any change, to learn its time and what it reaches."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "reached"
        began = time.monotonic()
        outcome = started(test, {"MUTANTS_REACHED": str(told)}, 300)
        test.seconds = time.monotonic() - began
        if told.exists():
            test.reached = {int(line) for line in told.read_text().split()}
    return not outcome


def run(test: Test, mutant: int) -> str:
    """`caught` if the test fails, `timeout` if it does not end, nothing if it passes."""
    return started(test, {"MUTANT": str(mutant)}, PATIENCE * test.seconds + PATIENCE_SECONDS)


def started(test: Test, more: dict, seconds: float) -> str:
    process = subprocess.Popen(
        [test.program, "--exact", test.name, "--test-threads=1"],
        cwd=test.folder,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return "caught" if process.wait(seconds) else ""
    except subprocess.TimeoutExpired:
        # Also what the test itself has started.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return "timeout"


@functools.cache
def metadata() -> list:
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return json.loads(found.stdout)["packages"]


@functools.cache
def manifests() -> dict:
    """Where each package of the workspace is described."""
    return {of["name"]: Path(of["manifest_path"]).relative_to(ROOT) for of in metadata()}


if __name__ == "__main__":
    sys.exit(main())
