"""`Index.metrics`: what Prometheus reads of an index and of a handle."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.errors import ClosedIndex, InvalidOption

parser = pytest.importorskip("prometheus_client.openmetrics.parser")


def read(index: simindex.Index, **options: Any) -> dict[tuple[str, str], float]:
    """Values by name of the sample and its label `call` or `kind`; those of all units fit."""
    found = {}
    for family in parser.text_string_to_metric_families(index.metrics(**options)):
        for sample in family.samples:
            label = sample.labels.get("call") or sample.labels.get("kind") or ""
            found[sample.name, label] = sample.value
    return found


def test_the_figures_of_an_index_are_those_of_its_stats(index_path: Path) -> None:
    options = simindex.IndexOptions(batch_rows=64, keys="str")
    with simindex.open(index_path, "n", options=options) as index:
        rows = np.arange(100, dtype=np.uint64)
        index.append(rows[:64], keys=[f"k{n}" for n in range(64)])
        index.append(rows[64:], keys=[f"k{n}" for n in range(64, 100)])
        index.commit()
        index.delete(keys=["k3", "k70"])
        index.commit()
        index.append(rows[:5], keys=list("abcde"))
        found, stats = read(index), index.stats()
        assert found["simindex_uncommitted_rows", ""] == 5
    assert found["simindex_live_rows", ""] == stats.rows == 98
    assert found["simindex_stored_rows", ""] == 100
    assert found["simindex_pending_rows", ""] == stats.pending_rows
    assert found["simindex_segments", ""] == stats.segments
    assert found["simindex_tombstones", ""] == stats.tombstones == 2
    assert found["simindex_generation", ""] == stats.generation
    sizes = {kind: size for (name, kind), size in found.items() if name == "simindex_size_bytes"}
    assert sizes["catalog"] == stats.bytes_catalog
    assert sum(sizes.values()) == stats.bytes_segments + stats.bytes_catalog
    assert {kind: sizes[kind] for kind in stats.structures} == stats.structures


def test_what_a_handle_did_is_counted(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        rows = np.array([0, 1, 7 << 60], np.uint64)
        index.append(rows, ids=[1, 2, 3])
        index.commit()
        index.commit()  # has nothing to do
        index.query(rows, h=1)
        list(index.query_stream(rows, h=1))
        index.top(rows, k=2)
        index.ingest(np.array([7 << 40, 7 << 40], np.uint64), ids=[4, 5], h=1)
        for fingerprint in (7 << 50, 7 << 50, 7 << 40):
            batch = simindex.Batch(np.array([fingerprint], np.uint64))
            index.seen_or_add(batch, h=1, commit_s=None)
        index.replace(simindex.Batch(rows[:2], ids=np.array([1, 2], np.uint64)))
        index.delete(ids=[3, 99])
        with pytest.raises(InvalidOption):
            index.query(rows, h=65)
        index.commit()
        found = read(index)

    def by_call(name: str) -> dict[str, float]:
        return {call: value for (sample, call), value in found.items() if sample == name}

    assert by_call("simindex_calls_total") == {
        "query": 1, "query_stream": 1, "top": 1, "seen_or_add": 3, "ingest": 1, "append": 1,
        "replace": 1, "delete": 1, "expire": 0,
    }
    assert by_call("simindex_asked_documents_total") == {
        "query": 3, "query_stream": 3, "top": 3, "seen_or_add": 3, "ingest": 2,
    }
    assert by_call("simindex_found_matches_total") == {
        "query": 5, "query_stream": 5, "top": 6, "seen_or_add": 2, "ingest": 1,
    }
    assert by_call("simindex_added_rows_total") == {
        "seen_or_add": 1, "ingest": 2, "append": 3, "replace": 2,
    }
    assert found["simindex_deleted_documents_total", ""] == 1
    assert found["simindex_commits_total", ""] == 3
    assert found["simindex_commit_seconds_total", ""] > 0
    assert min(by_call("simindex_search_seconds_total").values()) > 0


def test_merges_are_counted(index_path: Path) -> None:
    options = simindex.IndexOptions(batch_rows=64, min_merge=2)
    with simindex.open(index_path, "n", options=options) as index:
        for start in range(0, 640, 64):
            index.append(np.arange(start, start + 64, dtype=np.uint64))
            index.commit()
        index.compact()
        found = read(index)
    assert found["simindex_merges_total", ""] >= 1
    assert found["simindex_failed_merges_total", ""] == found["simindex_running_merges", ""] == 0


def test_a_reader_has_its_searches_alone(index_path: Path) -> None:
    simindex.open(index_path, "n").close()
    with simindex.open(index_path) as index:
        assert ("simindex_commits_total", "") not in read(index)
        assert read(index)["simindex_calls_total", "query"] == 0
        names = {name for name, _ in read(index, calls=False)}
    assert names == {
        "simindex_index_info", "simindex_live_rows", "simindex_stored_rows",
        "simindex_pending_rows", "simindex_segments", "simindex_tombstones", "simindex_generation",
        "simindex_size_bytes",
    }


@pytest.mark.parametrize(
    "name", [b'a"b', b"a\\b", b"a\\nb", b"a\nb", b"a{b=},#", "é".encode(), b"\xff"]
)
def test_the_label_of_an_index_is_its_path(tmp_path: Path, name: bytes) -> None:
    path = tmp_path / os.fsdecode(name)
    with simindex.open(path, "n") as index:
        text = index.metrics()
    text.encode()
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            told = os.fsencode(path).decode("utf-8", "backslashreplace")
            assert sample.labels["index"] in (told, told.replace("\\xff", "\\udcff"))


def test_units_are_declared_and_the_text_ends(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        text = index.metrics()
        families = {one.name: one for one in parser.text_string_to_metric_families(text)}
    assert text.endswith("\n# EOF\n")
    assert families["simindex_size_bytes"].unit == "bytes"
    assert families["simindex_search_seconds"].unit == "seconds"
    assert all(family.documentation for family in families.values())


def test_wrong_calls_are_refused(index_path: Path) -> None:
    index = simindex.open(index_path, "n")
    with pytest.raises(InvalidOption, match="calls"):
        index.metrics(calls=np.zeros(2))  # type: ignore[arg-type]
    index.close()
    with pytest.raises(ClosedIndex):
        index.metrics()
