#!/usr/bin/env python3
"""Checks that what the pages name is there: linked files, paths, tests, and every setting with its row."""

import re
import sys

from metadata import ROOT

FOLDERS = ("crates/", "bench/", "fuzz/", "docs/", "scripts/", "deploy/", "examples/")
# Two underscores or more: the way tests are named, and hardly anything else.
TEST_NAME = re.compile(r"`([a-z][a-z0-9]*(?:_[a-z0-9]+){2,})`")
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
PATH = re.compile(r"`((?:%s)[\w./-]*)`" % "|".join(FOLDERS))
FUNCTION = re.compile(r"\bfn ([a-z][a-z0-9_]*)")
SETTING = re.compile(r'setting\(\s*"([a-z-]+)"')
ROW = re.compile(r"^\| `([a-z-]+)` \|", re.MULTILINE)


def main() -> int:
    wrong = []
    sources = [*ROOT.glob("crates/**/*.rs"), *ROOT.glob("bench/**/*.rs"), *ROOT.glob("fuzz/**/*.rs")]
    functions = {name for source in sources for name in FUNCTION.findall(source.read_text())}
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    for page in pages:
        text, shown = page.read_text(), page.relative_to(ROOT)
        for link in LINK.findall(text):
            if "://" not in link and not (page.parent / link).exists():
                wrong.append(f"{shown} links to {link}, which is not there")
        for path in PATH.findall(text):
            if "NAME" not in path and not (ROOT / path).exists():
                wrong.append(f"{shown} names {path}, which is not there")
        for name in TEST_NAME.findall(text):
            if name not in functions:
                wrong.append(f"{shown} names `{name}`, and no function is called so")
    settings = set(SETTING.findall((ROOT / "crates/cli/src/serve/settings.rs").read_text()))
    operating = (ROOT / "docs/operating.md").read_text()
    rows = set(ROW.findall(operating[operating.index("## Settings") :]))
    wrong += [f"docs/operating.md lacks the setting `{key}`" for key in sorted(settings - rows)]
    wrong += [f"docs/operating.md has `{key}`, which is no setting" for key in sorted(rows - settings)]
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    if not wrong:
        print(f"pages: {len(pages)}, everything they name is there")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
