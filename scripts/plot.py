#!/usr/bin/env python3
"""Draws the lines that the benchmarks print: `plot.py LINES FOLDER` writes one SVG for each benchmark.

LINES has one JSON object a line, as `make bench W=W1` prints them; the last one of several for the same point counts. The
same lines give the same files, byte by byte.
"""

import json
import math
import sys
from pathlib import Path

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 78, 232, 52, 56
COLOURS = ["#0b6e99", "#c4501b", "#2e7d32", "#7b3fa0", "#946200", "#b0184a", "#44546a", "#00796b", "#5d4037", "#1a3fb0"]

# For each file: the benchmark, the title, what is along and up, what tells the series apart, and what a line must have.
PLOTS = [
    ("w1", "W1", "Start, ten tasks, end", "in_flight", "in flight", [("per_s", "")], "instances a second", ["policy"]),
    ("w1-cost", "W1", "Processor time of an instance", "in_flight", "in flight", [("cpu_ms_per_instance", "")],
     "ms an instance", ["policy"]),
    ("w2", "W2", "Parked instances: resident memory", "parked", "parked", [("resident_mb", "")], "MB", ["part"]),
    ("w2-cost", "W2", "Parking: processor time of an instance", "parked", "parked", [("cpu_ms_per_instance", "")],
     "ms an instance", ["part"]),
    ("w3", "W3", "Timers: how late", "due_per_s", "due a second",
     [("late_p50_ms", "p50"), ("late_p99_ms", "p99"), ("late_max_ms", "latest")], "ms", []),
    ("w4", "W4", "Restart after kill -9", "in_flight", "in flight",
     [("first_answer_p50_ms", "first answer"), ("all_done_p50_ms", "all done")], "ms", ["policy"]),
    ("w5", "W5", "SIGTERM: exit beyond the longest activity", "in_flight", "in flight",
     [("exit_beyond_p50_ms", "p50"), ("exit_beyond_max_ms", "latest")], "ms", ["process"]),
    ("w6", "W6", "Over HTTP", "in_flight", "in flight", [("per_s", "instances"), ("jobs_per_s", "jobs")],
     "a second", []),
    ("w7", "W7", "Cost of a step as an instance grows", "size", "size", [("cpu_us_per_step", "")], "µs of processor time",
     ["part", "policy"]),
]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    lines = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines() if line.startswith("{")]
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for line in lines:
        if "within_ms" in line:
            line["due_per_s"] = line["timers"] * 1000 / line["within_ms"]
    for name, bench, title, along, along_text, ups, up_text, by in PLOTS:
        series = {}
        for line in lines:
            for up, word in ups:
                if line.get("bench") == bench and along in line and up in line:
                    words = [word] + [str(line[key]) for key in by]
                    series.setdefault(" ".join(filter(None, words)), {})[line[along]] = line[up]
        if series:
            path = folder / f"{name}.svg"
            path.write_text(draw(f"{bench}. {title}", along_text, up_text, series))
            print(path)


class Axis:
    """Where values stand between two places, by their logarithm where they span more than a power of ten."""

    def __init__(self, values, begin, end):
        low, high = min(values), max(values)
        self.is_log = low > 0 and high / low > 10
        if self.is_log:
            low, high = 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high))
        else:
            low, high = 0, nice(high)
        self.low, self.high, self.begin, self.end = low, high, begin, end

    def at(self, value):
        if self.is_log:
            share = math.log10(max(value, self.low) / self.low) / math.log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self):
        if self.is_log:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            return [10.0**n for n in range(first, last + 1)]
        return [self.high * n / 5 for n in range(6)]


def nice(high):
    """The next round number, so that fifths of it are round too."""
    if high <= 0:
        return 1
    unit = 10 ** math.floor(math.log10(high))
    return next(n * unit for n in (1, 1.5, 2, 2.5, 5, 7.5, 10) if n * unit >= high)


def number(value):
    for unit, word in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{word}"
    return f"{value:g}"


def text(x, y, words, anchor="middle", more=""):
    escaped = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escaped}</text>'


def draw(title, along_text, up_text, series):
    points = [point for line in series.values() for point in line.items()]
    along = Axis([x for x, _ in points], LEFT, WIDTH - RIGHT)
    up = Axis([y for _, y in points], HEIGHT - BOTTOM, TOP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#222">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        text(LEFT, 26, title, "start", ' font-size="16" font-weight="bold"'),
    ]
    for tick in along.ticks():
        x = along.at(tick)
        out.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#e3e3e3"/>')
        out.append(text(x, HEIGHT - BOTTOM + 18, number(tick)))
    for tick in up.ticks():
        y = up.at(tick)
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#e3e3e3"/>')
        out.append(text(LEFT - 8, y + 4, number(tick), "end"))
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, along_text))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(text(20, middle, up_text, "middle", f' transform="rotate(-90 20 {middle:.1f})"'))
    for place, (name, line) in enumerate(sorted(series.items())):
        colour = COLOURS[place % len(COLOURS)]
        drawn = [(along.at(x), up.at(y)) for x, y in sorted(line.items())]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in drawn)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out.extend(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in drawn)
        y = TOP + 10 + place * 20
        out.append(f'<rect x="{WIDTH - RIGHT + 18}" y="{y - 9}" width="12" height="12" fill="{colour}"/>')
        out.append(text(WIDTH - RIGHT + 38, y + 2, name or up_text, "start"))
    out.append("</svg>")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    main()
