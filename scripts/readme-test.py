#!/usr/bin/env python3
"""Runs every command of README.md and compares what it prints with what README.md shows.

The blocks of README.md:

- ```sh          runs in bash, one block after the other, as in one terminal; every command must succeed.
- ```sh server   starts in the background and has to announce an address. It runs until the next server block or the
                 end of the page and is ended by Ctrl-C. `exit=N` beside it is the exit code that its drain report
                 must then show (0 if nothing is written).
- ```sh itself   is not run: it is what runs this test.
- ```text        after a block: its lines must be found in the block's output, in their order. `…` stands for
                 anything, a gap for any gap.

Port 8088 is replaced by a free one. Everything happens in a directory of links to the tree, so no data is left behind.
TIDEGATE_README_SHOW=1 shows what every block prints.
"""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A block has to end within this, a server to announce itself: a first build is part of it.
BLOCK_SECONDS = 120
SERVER_SECONDS = 900
STOP_SECONDS = 60
DEFAULT_ADDRESS = "127.0.0.1:8088"


class Wrong(Exception):
    """What the page says is not what happens."""


class Block:
    def __init__(self, line: int, info: list[str], text: str):
        self.line, self.info, self.text = line, info, text
        self.expected: str | None = None

    @property
    def name(self) -> str:
        return f"README.md:{self.line}"

    @property
    def exit_code(self) -> int:
        return next((int(word[5:]) for word in self.info if word.startswith("exit=")), 0)


def read(page: str) -> list[Block]:
    """The sh blocks, each with the text block that follows it."""
    blocks: list[Block] = []
    lines = page.splitlines()
    position = 0
    while position < len(lines):
        if lines[position].startswith("```") and (info := lines[position][3:].split()):
            start = position + 1
            position = start
            while lines[position] != "```":
                position += 1
            text = "\n".join(lines[start:position])
            if info[0] == "sh":
                blocks.append(Block(start + 1, info[1:], text))
            elif info[0] == "text" and blocks:
                if blocks[-1].expected is not None:
                    raise Wrong(f"README.md:{start}: two text blocks follow the same commands")
                blocks[-1].expected = text
            elif info[0] not in ("text", "xml", "toml", "json", "rust"):
                raise Wrong(f"README.md:{start}: no block is marked `{info[0]}`")
        position += 1
    return blocks


def pattern(line: str) -> re.Pattern:
    """A line of expected output."""
    parts = [r"\s+".join(re.escape(word) for word in part.split()) for part in line.split("…")]
    return re.compile(r"\s*.*?\s*".join(parts))


def compare(block: Block, output: str) -> None:
    rest = iter(output.splitlines())
    for line in (block.expected or "").splitlines():
        if line.strip() in ("", "…"):
            continue
        wanted = pattern(line)
        if not any(wanted.search(found) for found in rest):
            raise Wrong(f"{block.name}: no line like `{line.strip()}` where it is expected, in:\n{output}")


class Server:
    """A block that goes on until it is stopped."""

    def __init__(self, block: Block, command: str, place: Path, environment: dict):
        self.block, self.output, self.is_up = block, "", threading.Event()
        self.process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        last = self.last_line()
        until = time.monotonic() + SERVER_SECONDS
        while not self.is_up.wait(0.1):
            if self.process.poll() is not None or time.monotonic() > until:
                self.kill()
                raise Wrong(f"{block.name}: nothing announces `{last}`, in:\n{self.output}")

    def last_line(self) -> str:
        """The last line that the page shows of it: then it is ready."""
        shown = [line for line in (self.block.expected or "").splitlines() if line.strip() not in ("", "…")]
        return shown[-1].strip() if shown else "Try:"

    def read(self) -> None:
        ready = pattern(self.last_line())
        for line in self.process.stdout:
            self.output += line
            if ready.search(line):
                self.is_up.set()

    def stop(self) -> None:
        """Ctrl-C, as a terminal does it: to the whole group."""
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Wrong(f"{self.block.name}: did not end after Ctrl-C:\n{self.output}") from None
        self.reader.join(STOP_SECONDS)
        compare(self.block, self.output)
        reports = [line for line in self.output.splitlines() if line.startswith('{') and '"exitCode"' in line]
        code = json.loads(reports[-1])["exitCode"] if reports else None
        if code != self.block.exit_code:
            raise Wrong(f"{self.block.name}: ended with {code}, not {self.block.exit_code}:\n{self.output}")

    def kill(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.reader.join(STOP_SECONDS)


class Terminal:
    """One bash that runs block after block and keeps directory and variables between them."""

    MARK = "--- end of block"

    def __init__(self, place: Path, environment: dict):
        self.place = place
        self.process = subprocess.Popen(
            ["bash", "--norc"],
            cwd=place,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.write("set -E -o pipefail; trap 'failed=$?' ERR")

    def write(self, command: str) -> None:
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def run(self, block: Block, command: str) -> str:
        (self.place / ".block").write_text(command + "\n")
        self.write(f"failed=0; . ./.block </dev/null; printf '\\n%s %s\\n' '{self.MARK}' $failed")
        watchdog = threading.Timer(BLOCK_SECONDS, self.close)
        watchdog.start()
        output = ""
        for line in self.process.stdout:
            if line.startswith(self.MARK):
                watchdog.cancel()
                if line.split()[-1] != "0":
                    raise Wrong(f"{block.name}: a command failed with {line.split()[-1]}:\n{output}")
                return output
            output += line
        watchdog.cancel()
        raise Wrong(f"{block.name}: the shell ended, or took longer than {BLOCK_SECONDS} s:\n{output}")

    def close(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def lay_out(place: Path) -> None:
    """The tree as a clone has it, by links, without data of its own. Cargo still builds where the tree is."""
    for entry in ROOT.iterdir():
        if entry.name == "examples":
            shutil.copytree(entry, place / entry.name)
        elif not entry.name.startswith(".") and entry.name not in ("target", "tidegate-data"):
            (place / entry.name).symlink_to(entry)
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    (place / "target").symlink_to(ROOT / target)
    shim = place / ".bin" / "cargo"
    shim.parent.mkdir()
    shim.write_text(f"#!/bin/sh\ncd {shlex.quote(str(ROOT))} && exec {shlex.quote(shutil.which('cargo'))} \"$@\"\n")
    shim.chmod(0o755)


def clean_environment(place: Path) -> dict:
    """Without settings of whoever runs the test."""
    strange = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "CARGO_TARGET_DIR")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TIDEGATE_") and k not in strange}
    return kept | {"PATH": f"{place / '.bin'}:{kept['PATH']}"}


def run(blocks: list[Block], place: Path) -> int:
    """Runs the blocks in order and gives their number."""
    lay_out(place)
    base = clean_environment(place)
    shows = os.environ.get("TIDEGATE_README_SHOW") == "1"
    blocks = [block for block in blocks if "itself" not in block.info]
    port = free_port()
    server: Server | None = None
    terminal = Terminal(place, base)
    try:
        for block in blocks:
            if "server" in block.info:
                if server:
                    server.stop()
                terminal.close()
                port = free_port()
                terminal = Terminal(place, base | {"TIDEGATE_SERVER": f"http://127.0.0.1:{port}"})
            command = block.text.replace(DEFAULT_ADDRESS, f"127.0.0.1:{port}")
            block.expected = (block.expected or "").replace(DEFAULT_ADDRESS, f"127.0.0.1:{port}")
            if "server" in block.info:
                server = Server(block, command, place, base | {"TIDEGATE_LISTEN": f"127.0.0.1:{port}"})
                output = server.output
            else:
                output = terminal.run(block, command)
                compare(block, output)
            if shows:
                print(f"--- {block.name}\n{block.text}\n--- prints\n{output}")
        if server:
            last, server = server, None
            last.stop()
    finally:
        terminal.close()
        if server:
            server.kill()
    return len(blocks)


def main() -> int:
    try:
        blocks = read((ROOT / "README.md").read_text())
        with tempfile.TemporaryDirectory(prefix="tidegate-readme-") as folder:
            count = run(blocks, Path(folder))
    except (Wrong, subprocess.TimeoutExpired) as wrong:
        print(f"error: {wrong}", file=sys.stderr)
        return 1
    print(f"readme: {count} blocks run as they are written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
