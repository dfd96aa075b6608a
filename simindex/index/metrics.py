"""Figures of an index, and of what a handle has done, in the text format of OpenMetrics.

    # TYPE simindex_live_rows gauge
    # HELP simindex_live_rows Rows that queries may find.
    simindex_live_rows{index="/data/pages.sim"} 1200
    # EOF

Source: the OpenMetrics specification, version 1.0. A family whose values have a unit is named after
it; counters have the suffix ``_total``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from simindex.index.counts import Counts
from simindex.index.handle import Handle
from simindex.index.statistics import row_bytes, structure_bytes, tombstone_bytes
from simindex.storage.snapshot import Snapshot

Sample = tuple[dict[str, str], float]
"""Labels and value."""


class Family(NamedTuple):
    """A metric with its samples."""

    name: str
    kind: Literal["gauge", "counter", "info"]
    help: str
    samples: Sequence[Sample]
    unit: str = ""


def text(handle: Handle, snapshot: Snapshot, *, calls: bool) -> str:
    """The exposition; see `Index.metrics`."""
    path = str(handle.path).encode("utf-8", "backslashreplace").decode()
    families = [*_of_index(handle, snapshot), *(_of_handle(handle) if calls else ())]
    return "".join(_lines(family, path) for family in families) + "# EOF\n"


def _of_index(handle: Handle, snapshot: Snapshot) -> Iterator[Family]:
    options = handle.options
    described = {"bits": str(options.bits), "keys": str(options.keys or "none")}
    yield Family("simindex_index", "info", "What the rows of the index are.", [(described, 1)])
    sizes = {
        "rows": row_bytes(snapshot), **structure_bytes(options, snapshot),
        "tombstones": tombstone_bytes(snapshot), "catalog": handle.environment.file_bytes,
    }
    figures = {
        "live_rows": (snapshot.stored_rows - snapshot.dead_rows, "Rows that queries may find."),
        "stored_rows": (
            snapshot.stored_rows, "Rows on disk, also deleted ones that no merge has dropped yet."
        ),
        "pending_rows": (
            snapshot.head.pending_rows, "Rows that wait in the catalog until they become a segment."
        ),
        "segments": (len(snapshot.segments), "Segments."),
        "tombstones": (
            len(snapshot.tombstones), "Deletions that no merge has applied to all segments yet."
        ),
        "generation": (snapshot.head.generation, "Number of the newest commit."),
    }
    for name, (value, told) in figures.items():
        yield Family(f"simindex_{name}", "gauge", told, [({}, value)])
    yield Family(
        "simindex_size_bytes", "gauge", "Size of the index on disk, by what it is of.",
        [({"kind": kind}, size) for kind, size in sizes.items()], unit="bytes",
    )


def _of_handle(handle: Handle) -> Iterator[Family]:
    counts, writer = handle.counts, handle.writer
    searches = dict(counts.of(Counts.SEARCHES))
    changes = dict(counts.of(Counts.CHANGES)) if writer is not None else {}
    asking = searches | {name: changes[name] for name in ("seen_or_add", "ingest") if changes}
    yield Family(
        "simindex_calls", "counter", "Calls that returned.",
        [({"call": name}, tally.calls) for name, tally in (searches | changes).items()],
    )
    yield Family(
        "simindex_asked_documents", "counter", "Documents that calls looked up.",
        [({"call": name}, tally.asked) for name, tally in asking.items()],
    )
    yield Family(
        "simindex_found_matches", "counter",
        "Matches that were found; of seen_or_add documents that had one.",
        [({"call": name}, tally.found) for name, tally in asking.items()],
    )
    yield Family(
        "simindex_search_seconds", "counter", "Time of searches.",
        [({"call": name}, tally.seconds) for name, tally in searches.items()], unit="seconds",
    )
    if writer is None:
        return
    yield Family(
        "simindex_added_rows", "counter", "Rows that calls added, committed or not.",
        [({"call": name}, changes[name].added) for name in Counts.CHANGES
         if name not in ("delete", "expire")],
    )
    committer, merges = writer.committer, writer.merges
    for name, value, told in (
        ("deleted_documents", changes["delete"].found, "Documents that delete found and deleted."),
        ("expired_rows", changes["expire"].found, "Rows that expire found and deleted."),
        ("commits", committer.commits, "Commits that had anything to do."),
        ("merges", merges.installed, "Merges that became part of the index."),
        ("failed_merges", merges.failed, "Merges that failed, which loses nothing."),
    ):
        yield Family(f"simindex_{name}", "counter", told, [({}, value)])
    yield Family(
        "simindex_commit_seconds", "counter", "Time of commits.",
        [({}, committer.commits_s)], unit="seconds",
    )
    waiting = committer.waiting.rows + committer.recent.count
    yield Family("simindex_running_merges", "gauge", "Merges at work.", [({}, len(merges.running))])
    yield Family(
        "simindex_uncommitted_rows", "gauge", "Rows that wait for a commit.", [({}, waiting)]
    )


def _lines(family: Family, path: str) -> str:
    name, suffix = family.name, {"counter": "_total", "info": "_info", "gauge": ""}[family.kind]
    lines = [f"# TYPE {name} {family.kind}\n"]
    if family.unit:
        lines.append(f"# UNIT {name} {family.unit}\n")
    lines.append(f"# HELP {name} {family.help}\n")
    for labels, value in family.samples:
        told = ",".join(
            f'{label}="{_escaped(text)}"' for label, text in {"index": path, **labels}.items()
        )
        lines.append(f"{name}{suffix}{{{told}}} {value}\n")
    return "".join(lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
