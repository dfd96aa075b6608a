"""The formats of a gate's report: a name, suffixes of files, the writer. A new one is one row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Protocol, TextIO

from simindex.outputs.whole_file import whole_file
from simindex.reporting.gate_findings import Flagged, Opening, Verdict
from simindex.reporting.gate_json_lines import GateLines
from simindex.reporting.gate_page import GatePage
from simindex.reporting.sarif import GateSarif
from simindex.values import dataclass


class GateWriter(Protocol):
    """Writes a report: documents in their order, then the verdict, once."""

    def add(self, flagged: Flagged) -> None:
        """A document with a match or more."""

    def end(self, verdict: Verdict) -> None:
        """What is left to write."""


@dataclass(frozen=True, slots=True)
class GateFormat:
    """How a report is written."""

    name: str
    make: Callable[[TextIO, Opening], GateWriter]
    suffixes: tuple[str, ...]
    """In lower case: files with one of them get this format."""

    @contextmanager
    def to_file(self, path: Path, option: str, opening: Opening) -> Iterator[GateWriter]:
        """The writer of a file, which an option names; it gets its name on a clean exit."""
        with whole_file(path, option) as file:
            stream = TextIOWrapper(file, encoding="utf-8", newline="")
            try:
                yield self.make(stream, opening)
            finally:
                stream.detach()


GATE_FORMATS = {
    row.name: row
    for row in (
        GateFormat("jsonl", GateLines, (".jsonl", ".ndjson")),
        GateFormat("sarif", GateSarif, (".sarif", ".sarif.json")),
        GateFormat("html", GatePage, (".html", ".htm")),
    )
}
"""By name, in the order of the help."""


def gate_format_of(path: str) -> GateFormat | None:
    """The format that the name of a file tells."""
    name = path.lower()
    return next((row for row in GATE_FORMATS.values() if name.endswith(row.suffixes)), None)
