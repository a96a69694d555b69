"""What the person sees while packages are installed."""

from __future__ import annotations

import queue
import re
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from explorer.bootstrap.environment import site_packages

FETCHED = r"\s*(?:Downloading|Using cached|Processing) (\S+\.(?:whl|gz|zip))( \([\d.]+ \w+\))?(?: \(from .+\))?$"


class PipProgress:
    """Turns what pip prints into what a person wants to know: which package, how large, how many of how many."""

    def __init__(self, report: Report, environment: Path, *, expected: int) -> None:
        self.report = report
        self.installing = 0  # how many packages, once pip has begun to install them
        self._environment = environment
        self._expected = expected
        self._found = 0
        self._fetched = 0
        self._current = ""
        self._since = 0.0
        self._present: set[tuple[Path, int]] = set()

    def read(self, line: str) -> None:
        if match := re.match(r"Collecting (\S+)", line):
            self._found += 1
            self.report.update(f"[2/3] looking for {match[1]}")
        elif match := re.match(FETCHED, line):
            self._fetched += 1
            name_and_version = " ".join(re.split(r"[/\\]", match[1])[-1].split("-")[:2])
            self._current = f"[2/3] package {self._fetched}{self._total()}: {name_and_version}{match[2] or ''}"
            self._since = time.monotonic()
            self.report.line(self._current)
        elif match := re.match(r"Progress (\d+) of (\d+)", line):
            self.report.update(f"{self._current}: {100 * int(match[1]) // max(int(match[2]), 1)} %")
        elif match := re.search(r"Retrying \(Retry\(total=(\d+)", line):
            self.report.update(f"[2/3] the package index does not answer; trying {int(match[1]) + 1} more times")
        elif match := re.match(r"Installing collected packages: (.+)", line):
            self.installing = match[1].count(",") + 1
            self._present = self._records()
            self.report.line(f"[3/3] installing {self.installing} packages")

    def tick(self) -> None:
        """Called each second in which pip says nothing: within a large file, and all the time that it installs."""
        if self.installing:
            done = min(len(self._records() - self._present), self.installing - 1)  # pip is still at the last one
            self.report.update(f"[3/3] installed {done} of {self.installing} packages")
        elif self._current:
            self.report.update(f"{self._current}: {time.monotonic() - self._since:.0f} s")

    def _total(self) -> str:
        """Of how many packages, where that is known: of those pinned, unless pip found more before it fetched any."""
        return f" of about {max(self._expected, self._found)}" if self._expected else ""

    def _records(self) -> set[tuple[Path, int]]:
        """The metadata of every package in the environment, and when each was written."""
        folders = map(Path, site_packages(self._environment))
        records = [record for folder in folders for record in folder.glob("*.dist-info/METADATA")]
        return {(record, record.stat().st_mtime_ns) for record in records}


class Report:
    """Lines about the set-up. An update is rewritten in place on a terminal, and shown now and then elsewhere."""

    SECONDS_BETWEEN_UPDATES = 10.0

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rewrites = stream.isatty()
        self._said = ""
        self._latest = time.monotonic()

    def line(self, text: str) -> None:
        self.finish()
        self._write(text + "\n")

    def update(self, text: str) -> None:
        if self._rewrites:
            width = shutil.get_terminal_size().columns - 1
            self._write(f"\r{text[:width]:{width}}")
        elif text != self._said and time.monotonic() - self._latest >= self.SECONDS_BETWEEN_UPDATES:
            self._said = text
            self._write(text + "\n")

    def finish(self) -> None:
        """Clear the line that was being rewritten."""
        if self._rewrites:
            self.update("")
            self._write("\r")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
        self._latest = time.monotonic()


def each_second(stream: Iterable[str]) -> Iterator[str | None]:
    """The lines of a stream as they come, and None after each second without one."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in stream:
            lines.put(line.rstrip())
        lines.put(None)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    while True:
        try:
            line = lines.get(timeout=1)
        except queue.Empty:
            yield None
            continue
        if line is None:
            break
        yield line
    reader.join()
