"""Bytes that nobody wrote end in an answer or in a typed error: the quick form of `make fuzz`."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzzing import quick, readers, wrecks
from fuzzing.target import Target, attempt
from fuzzing.targets import TARGETS
from reliability import report

from simindex.errors import CorruptFile
from simindex.storage.catalog.sealed_values import checksum

SEED = 20_260
GOALS = {
    "segments": 2_400, "catalog": 2_400, "values": 3_000, "documents": 2_400, "wrecks": 200,
    "arguments": 1_800, "kernels": 1_500, "warc": 1_000, "arc": 1_000, "html": 1_000,
    "cells": 700, "arrays": 1_000, "tables": 1_000, "compressed": 1_000,
    "numpy": 1_000,
}
"""Executions, together more than 20,000."""


@pytest.mark.parametrize("name", TARGETS)
def test_mutations_end_in_an_answer_or_a_typed_error(name: str) -> None:
    """The seed and the counts are printed; a run that did fewer than its goal fails."""
    outcomes = quick.run([name], GOALS[name], SEED)
    print(report.table(outcomes))
    for outcome in outcomes:
        outcome.require()


def test_all_targets_together_reach_the_goal() -> None:
    """A target that is new needs a goal, and the sum is what was promised."""
    assert GOALS.keys() == TARGETS.keys()
    assert sum(GOALS.values()) > 20_000


WITHOUT_CHECKSUMS = {"arguments", "kernels", "wrecks", "html", "cells", "tables"}


@pytest.mark.parametrize("name", sorted(set(TARGETS) - WITHOUT_CHECKSUMS))
def test_repaired_bytes_get_behind_the_checksums(name: str) -> None:
    """A seed whose last byte, of its checksum, is overturned is refused, and read once repaired."""
    target = TARGETS[name]
    repair = target.repair
    assert repair is not None
    behind = 0
    for seed in target.seeds():
        target.execute(seed)
        damaged = seed[:-1] + bytes([seed[-1] ^ 0x55])
        if repair(damaged) == damaged:
            continue  # a value that has no checksum of its own
        if name not in ("documents", *readers.TARGETS):  # where a damaged record is skipped
            with pytest.raises(CorruptFile):
                target.execute(damaged)
        target.execute(repair(damaged))
        behind += 1
    assert behind


@pytest.mark.parametrize("keyed", [False, True])
def test_a_repaired_wreck_has_seals_that_hold(keyed: bool) -> None:
    """Each record whose first byte is another is damaged, and sealed once repaired."""
    for name, key, offset, size in wrecks.seals(keyed):
        wreck = bytes([keyed]) + wrecks.patch(0, offset, b"\x33")
        for data, holds in ((wreck, False), (wrecks.repair(wreck), True)):
            value = wrecks.wrecked(data)["catalog/data.mdb"][offset : offset + size]
            crc = int.from_bytes(value[-4:], "little")
            assert (checksum(name, key, value[:-4]) == crc) is holds
            assert value[0] == 0x33


def test_an_input_that_repair_leaves_alone_is_executed_once() -> None:
    """So executions are of different inputs, and all that no checksum stopped are counted."""
    seen: list[bytes] = []
    target = Target("upper", list, seen.append, bytes.upper)
    assert attempt(target, b"a") == (2, 1)
    assert attempt(target, b"A") == (1, 1)
    assert seen == [b"a", b"A", b"A"]
    assert attempt(Target("no checksums", list, seen.append), b"a") == (1, 0)


def test_a_fault_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of another type is not swallowed: it is counted, and its input kept."""

    def execute(data: bytes) -> None:
        if len(data) > 7:
            raise KeyError("no error of the package")

    monkeypatch.setitem(TARGETS, "broken", Target("broken", lambda: [b"1234567"], execute))
    counts = quick.fuzz("broken", 200, SEED, tmp_path)
    assert counts["faults"] > 0
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == counts["faults"]
    with pytest.raises(KeyError):
        attempt(TARGETS["broken"], kept[0].read_bytes())
