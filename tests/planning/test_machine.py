"""A machine's constants come back from their bytes, or the damage is noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simindex.errors import CorruptFile
from simindex.planning.machine import Machine

ROUND = Machine(
    delta_r_ns=100.0, delta_l_ns=2.0, delta_v_ns=5.0, delta_p_ns=10.0, delta_s_ns=3.0,
    disk_bytes_s=1e9,
)


def test_a_machine_is_read_back_as_it_was() -> None:
    for machine in (Machine(), replace(ROUND, measured=True, levels=((1024, ((1.5, 0.25),)),))):
        assert Machine.from_dict(machine.to_dict()) == machine


@pytest.mark.parametrize(
    "change",
    [
        {"top_alone_ns": 0.0}, {"issl_list_ns": float("nan")},
        {"delta_r_ns": 0.0}, {"delta_r_ns": -1.0}, {"delta_l_ns": float("nan")},
        {"disk_bytes_s": float("inf")}, {"levels": []}, {"levels": [[1, 2]]},
        {"levels": [[1, [[0.0, 1.0]]]]}, {"levels": [[1, []]]}, {"table_ns": "x"},
        {"streamed_ns": None}, {"vosh": []}, {"swept": [[2, 1], [1, 2]]}, {"heaped": [[3, -1]]},
    ],
)
def test_a_damaged_machine_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(CorruptFile, match="simindex tune"):
        Machine.from_dict({**Machine().to_dict(), **change})
    for damaged in (None, [], {}, 7):
        with pytest.raises(CorruptFile):
            Machine.from_dict(damaged)
