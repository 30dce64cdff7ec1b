#!/usr/bin/env python3
"""Runs jobs with --report and parses each page. Checks that the page closes every element and
loads no other file, that it has the expected curves, and that its tables have the figures of
--metrics.

    report_page.py STARLING
"""

import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

VOID = {"meta", "br", "hr", "img", "link", "input"}
PATHS = re.compile(r"[ML ][\d.]+,[\d.]+")


class Page(html.parser.HTMLParser):
    """A page: its tables by the id of their <details> or by their heading, the paths of its figures
    by id, and the faults of its HTML."""

    def __init__(self, text):
        super().__init__()
        self.open, self.faults, self.tables, self.figures, self.ids = [], [], {}, {}, []
        self.heading, self.where, self.title = "", "", ""
        self.feed(text)
        self.close()
        if self.open:
            self.faults.append(f"left open: {self.open}")

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        for name, value in attributes.items():
            if name in ("src", "href", "xlink:href") and not value.startswith("#"):
                self.faults.append(f"{tag} reaches for {value}")
        if tag in ("script", "link", "iframe", "object"):
            self.faults.append(f"has a {tag}")
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "figure":
            self.where = attributes["id"]
            self.figures[self.where] = []
        if tag == "details":
            self.where = attributes["id"]
        if tag == "h2":
            self.heading = ""
        if tag == "table":
            self.tables.setdefault(self.where or self.heading, [])
        if tag == "tr":
            self.rows().append([])
        if tag in ("td", "th"):
            self.rows()[-1].append("")
        if tag == "path" and "figure" in self.open:
            self.figures[self.where].append(attributes.get("d", ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.faults.append(f"</{tag}> after {self.open[-3:]}")
            return
        self.open.pop()
        if tag in ("figure", "details"):
            self.where = ""

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.rows()[-1][-1] += data
        elif self.open[-1:] == ["h2"]:
            self.heading += data
        elif self.open[-1:] == ["h1"]:
            self.title += data

    def rows(self):
        return self.tables[self.where or self.heading]

    def table(self, name):
        head, *rows = self.tables[name]
        return [dict(zip(head, row)) for row in rows]


def check(condition, *what):
    if not condition:
        sys.exit("report_page: " + " ".join(str(part) for part in what))


def same(cell, value):
    return cell == "" if value is None else float(cell) == float(value)


def check_progress(page, lines):
    expected = [line for line in lines if line["event"] == "progress"]
    rows = page.table("progress")
    # The page has one more row: the figures at the end of the job.
    check(len(rows) == len(expected) + 1, len(rows), "rows of progress for", len(expected), "lines")
    for row, line in zip(rows, expected):
        flat = {**line, **line["spread"], "draws": line.get("draws", 0),
                "passes": line.get("passes", 0)}
        for key in row:
            check(same(row[key], flat.get(key)), key, row, line)
    end = lines[-1]
    check(same(rows[-1]["elapsed_s"], end["wall_s"]), rows[-1], end)
    check(same(rows[-1]["median"], end["spread"]["median"]), rows[-1], end)


def check_evaluations(page, lines):
    expected = [line for line in lines if line["event"] == "evaluation"]
    rows = page.table("evaluations")
    check(len(rows) == len(expected), len(rows), "rows of evaluations for", len(expected), "lines")
    for row, line in zip(rows, expected):
        for key in row:
            check(same(row[key], line[key]), key, row, line)


def run(folder, starling, name, flags):
    page, metrics = folder / f"{name}.html", folder / f"{name}.jsonl"
    command = [starling, "train", "--quiet", "--report", page.name, "--metrics", metrics.name]
    ran = subprocess.run(command + flags, cwd=folder, capture_output=True, text=True, check=False)
    check(ran.returncode == 0, flags, ran.stderr)
    check(re.search(rf"\n  report +{page.name}\n", ran.stdout), ran.stdout)
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return Page(page.read_text()), lines


JOBS = {
    "classes": (["--data", "digits:n=600", "--steps", "60", "--eval-every", "20"],
                ["loss", "test-figure-1", "steps", "spread", "waiting", "draws"]),
    "values": (["--data", "linear:d=10,n=400,noise=0.1", "--steps", "50", "--mode", "central",
                "--barrier", "bsp"],
               ["loss", "steps", "spread", "waiting"]),
    "alone": (["--data", "digits:n=300", "--workers", "1", "--steps", "5"],
              ["loss", "test-figure-1", "steps"]),
    "one-step": (["--data", "linear:d=3,n=50", "--steps", "1", "--eval-every", "0"],
                 ["loss", "steps", "spread", "waiting"]),
    "crowd": (["--data", "digits:n=2000", "--workers", "64", "--steps", "10"],
              ["loss", "test-figure-1", "steps", "spread", "waiting", "draws"]),
}


def main(starling):
    if not shutil.which("gnuplot"):
        print("report_page: gnuplot is not installed")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for name, (flags, figures) in JOBS.items():
            page, lines = run(folder, starling, name, flags)
            check(not page.faults, name, page.faults)
            check(len(page.ids) == len(set(page.ids)), name, "has an id twice")
            check(set(figures) <= set(page.figures), name, "lacks", figures, list(page.figures))
            for figure in figures:
                check(any(len(PATHS.findall(d)) > 0 for d in page.figures[figure]), name, figure)
            check_progress(page, lines)
            check_evaluations(page, lines)
            settings = {row["setting"]: row["value"] for row in page.table("Configuration")
                        if "setting" in row}
            for key in ("mode", "barrier", "data", "model"):
                check(settings[key] == lines[-1][key], name, key, settings)
        data = "a<b>&\"c.csv"
        (folder / data).write_text("".join(f"{i % 7},{i % 3},{i % 2}\n" for i in range(60)))
        page, lines = run(folder, starling, "escaped", ["--data", f"csv:{data}", "--steps", "5"])
        check(not page.faults, page.faults)
        check(data in page.title, page.title)
    return 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve())))
