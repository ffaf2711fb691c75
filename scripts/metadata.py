"""What cargo says of the workspace, for the checks beside this file."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def load() -> dict:
    """`cargo metadata` of the workspace and everything it depends on."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def built() -> set[tuple[str, str]]:
    """Names and versions of what is really built on any platform.

    `cargo metadata` also lists what a crate only could switch on (`quinn?/…`); `cargo tree` does not.
    """
    command = ["cargo", "tree", "--locked", "--workspace", "--target", "all", "--edges", "normal,build,dev"]
    command += ["--prefix", "none", "--format", "{p}", "--no-dedupe"]
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    words = (line.split() for line in lines)
    return {(word[0], word[1].removeprefix("v")) for word in words if len(word) > 1}
