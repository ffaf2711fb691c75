#!/usr/bin/env python3
"""Checks that dependencies point one way, and that each part knows only what it may know.

What a crate depends on comes from `cargo metadata`; what it says of signals comes from its source.
"""

import re
import sys

from metadata import ROOT, load

# Which crates of the workspace a crate may depend on.
MAY_USE = {
    "tidegate-model": set(),
    "tidegate-expression": {"tidegate-model"},
    "tidegate-bpmn": {"tidegate-model"},
    "tidegate-dmn": {"tidegate-expression", "tidegate-model"},
    "tidegate-engine": {"tidegate-expression", "tidegate-model"},
    "tidegate-gate": set(),
    "tidegate-store": {"tidegate-model"},
    "tidegate": {
        "tidegate-bpmn",
        "tidegate-dmn",
        "tidegate-engine",
        "tidegate-expression",
        "tidegate-gate",
        "tidegate-model",
        "tidegate-store",
    },
    "tidegate-server": {"tidegate"},
    "tidegate-script": {"tidegate"},
    "tidegate-cli": {"tidegate", "tidegate-script", "tidegate-server"},
    "tidegate-bench": {"tidegate"},
    "tidegate-examples": {"tidegate"},
    "tidegate-fuzz": {
        "tidegate",
        "tidegate-bpmn",
        "tidegate-dmn",
        "tidegate-engine",
        "tidegate-expression",
        "tidegate-model",
        "tidegate-server",
    },
    "tidegate-guard": {
        "tidegate-bpmn",
        "tidegate-engine",
        "tidegate-expression",
        "tidegate-gate",
        "tidegate-model",
        "tidegate-store",
    },
    "tidegate-sim": {"tidegate"},
}
# Nothing may depend on these, in tests neither.
FOR_NOBODY = {"tidegate-cli", "tidegate-bench", "tidegate-examples", "tidegate-fuzz", "tidegate-guard", "tidegate-sim"}
# Crates that only these parts may depend on. The examples are programs of somebody who has axum already, and the
# fuzzer calls the router in its own process.
ONLY = {
    "axum": {"tidegate-examples", "tidegate-fuzz", "tidegate-server"},
    "hyper": {"tidegate-server"},
    "hyper-util": {"tidegate-server"},
    "tower": {"tidegate-fuzz", "tidegate-server"},
    "rusqlite": {"tidegate-store"},
    "roxmltree": {"tidegate-bpmn", "tidegate-dmn"},
    "rquickjs": {"tidegate-script"},
    "clap": {"tidegate-cli"},
}
# Parts that must stay free of any async runtime, also by way of others.
PURE = ["tidegate-gate", "tidegate-model", "tidegate-expression", "tidegate-bpmn", "tidegate-dmn", "tidegate-engine"]
ASYNC_RUNTIMES = {"tokio", "async-std", "smol", "async-executor", "mio", "futures-executor"}
# How source takes hold of signals.
SIGNALS = re.compile(r"tokio::signal|signal_hook|\bctrlc\b|sigaction")
KNOWS_SIGNALS = "tidegate-cli"


def is_normal(dependency: dict) -> bool:
    return dependency["kind"] != "dev"


def tree(metadata: dict, root: str) -> set[str]:
    """The names of everything that is built into `root`."""
    names = {package["id"]: package["name"] for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    open_ids = [key for key, name in names.items() if name == root]
    seen = set(open_ids)
    while open_ids:
        for dependency in nodes[open_ids.pop()]["deps"]:
            is_built_in = any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])
            if is_built_in and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                open_ids.append(dependency["pkg"])
    return {names[key] for key in seen}


def main() -> int:
    metadata = load()
    members = [p for p in metadata["packages"] if p["id"] in set(metadata["workspace_members"])]
    ours = {member["name"] for member in members}
    wrong = []
    for member in members:
        name = member["name"]
        if name not in MAY_USE:
            wrong.append(f"{name} has no row in scripts/check-layers.py: say there what it may depend on")
            continue
        for dependency in member["dependencies"]:
            used = dependency["name"]
            if used in FOR_NOBODY and used in ours:
                wrong.append(f"{name} depends on {used}, on which nothing may depend")
            if not is_normal(dependency):
                continue
            if used in ours and name in MAY_USE and used not in MAY_USE[name]:
                wrong.append(f"{name} depends on {used}: that arrow points the wrong way")
            if name not in ONLY.get(used, {name}):
                wrong.append(f"{name} depends on {used}, which only {' and '.join(sorted(ONLY[used]))} may know")
        if name != KNOWS_SIGNALS:
            folder = ROOT / member["manifest_path"]
            for file in sorted((folder.parent / "src").rglob("*.rs")):
                if SIGNALS.search(file.read_text()):
                    wrong.append(f"{file.relative_to(ROOT)} takes signals; only {KNOWS_SIGNALS} may")
    for name in PURE:
        wrong += [f"{name} has {found} in its tree" for found in sorted(tree(metadata, name) & ASYNC_RUNTIMES)]
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    if not wrong:
        print(f"layers: {len(members)} crates, all arrows point one way")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
