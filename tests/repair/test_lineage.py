"""Which files are the index is decided by what they say of each other."""

from __future__ import annotations

from simindex.repair import lineage
from simindex.repair.lineage import Kin


def test_which_files_are_the_index() -> None:
    a, b = Kin("a", 2, 2, True), Kin("b", 3, 3, True)
    m = Kin("m", 4, 3, True, ("a", "b"))
    n = Kin("n", 6, 5, True, ("m", "c"))
    files = {kin.name: kin for kin in (a, b, m)}
    assert lineage.as_found(files) == {"m"}
    assert lineage.as_committed({"a", "b"}, files) == {"a", "b"}
    assert lineage.as_found({**files, "n": n}) == {"n"}, "also what its inputs were made of"
    assert lineage.as_found({"a": a, "m": m}) == {"m"}
    hurt = Kin("m", 4, 3, False, ("a", "b"))
    assert lineage.as_found({**files, "m": hurt}) == {"a", "b"}
    assert lineage.as_found({"a": a, "m": hurt}) == {"m"}
    assert lineage.as_committed({"m"}, {**files, "m": hurt}) == {"a", "b"}
    assert lineage.as_committed({"a", "b"}, {**files, "b": Kin("b", 3, 3, False)}) == {"m"}
    assert lineage.as_found(files, {"b"}, 3) == {"m"}
    assert lineage.as_found({"a": a, "b": b}, {"b"}, 3) == {"b"}, "a was gone by then"
    again = Kin("s", 2, 2, True, ("a",), salvaged=True)
    assert lineage.as_found({"a": Kin("a", 2, 2, False), "s": again}) == {"a"}
    assert lineage.as_found({"s": again}) == {"s"}
    circle = {"x": Kin("x", 2, 1, True, ("y",)), "y": Kin("y", 2, 1, True, ("x", "y"))}
    assert len(lineage.as_found(circle)) <= 1
