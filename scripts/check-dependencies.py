#!/usr/bin/env python3
"""Checks every dependency against deny.toml: its licence, its name, and where it comes from.

Reads the part of deny.toml that this project uses. cargo-deny does the same and more; it takes minutes to build.
"""

import re
import sys
import tomllib

from metadata import ROOT, built, load

CRATES_IO = "crates.io-index"


def alternatives(expression: str) -> list[frozenset[str]]:
    """The sets of licences of which one set must be allowed as a whole."""
    tokens = re.findall(r"\(|\)|[^\s()/]+|/", expression)
    position = 0

    def peek() -> str | None:
        return tokens[position] if position < len(tokens) else None

    def take() -> str:
        nonlocal position
        position += 1
        return tokens[position - 1]

    def one_of() -> list[frozenset[str]]:
        found = all_of()
        while peek() in ("OR", "/"):
            take()
            found = found + all_of()
        return found

    def all_of() -> list[frozenset[str]]:
        found = single()
        while peek() == "AND":
            take()
            right = single()
            found = [left | other for left in found for other in right]
        return found

    def single() -> list[frozenset[str]]:
        token = take()
        if token == "(":
            found = one_of()
            if take() != ")":
                raise ValueError(expression)
            return found
        if peek() == "WITH":
            take()
            token = f"{token} WITH {take()}"
        return [frozenset([token])]

    found = one_of()
    if position != len(tokens):
        raise ValueError(expression)
    return found


def main() -> int:
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    allowed = set(rules["licenses"]["allow"])
    banned = {entry["crate"]: entry["reason"] for entry in rules["bans"]["deny"]}
    reached = built()
    packages = [package for package in load()["packages"] if (package["name"], package["version"]) in reached]
    wrong, used = [], set()
    for package in packages:
        name = f"{package['name']} {package['version']}"
        if package["name"] in banned:
            wrong.append(f"{name} is banned: {banned[package['name']]}")
        source = package["source"]
        if source is not None and not (source.startswith("registry+") and source.endswith(CRATES_IO)):
            wrong.append(f"{name} does not come from crates.io: {source}")
        expression = package["license"]
        if not expression:
            wrong.append(f"{name} names no licence")
            continue
        fitting = [licences for licences in alternatives(expression) if licences <= allowed]
        if not fitting:
            wrong.append(f"{name} has the licence `{expression}`, which deny.toml does not allow")
        used.update(*fitting)
    wrong += [f"deny.toml allows `{licence}`, which no dependency has" for licence in sorted(allowed - used)]
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    if not wrong:
        print(f"dependencies: {len(packages)} packages, {len(used)} licences, all allowed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
