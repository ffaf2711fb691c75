"""Prints the line coverage of each file of engine, store and runtime, lowest first: see scripts/coverage.sh."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("crates/engine/src/", "crates/store/src/", "crates/runtime/src/")


def main() -> int:
    summary, floor = json.loads(Path(sys.argv[1]).read_text()), float(sys.argv[2])
    rows = []
    for file in summary["data"][0]["files"]:
        name = file["filename"].removeprefix(f"{ROOT}/")
        lines = file["summary"]["lines"]
        if name.startswith(PARTS) and lines["count"]:
            rows.append((100 * lines["covered"] / lines["count"], lines["covered"], lines["count"], name))
    rows.sort()
    for percent, covered, count, name in rows:
        print(f"{percent:5.1f} %  {covered:5} of {count:5} lines  {name}")
    below = [row for row in rows if row[0] < floor]
    for percent, _, _, name in below:
        print(f"error: {name} is at {percent:.1f} %, below {floor:.0f} %", file=sys.stderr)
    covered, count = sum(row[1] for row in rows), sum(row[2] for row in rows)
    print(f"coverage: {len(rows)} files, {100 * covered / max(count, 1):.1f} % of {count} lines, {len(below)} files below {floor:.0f} %")
    return 1 if below or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
