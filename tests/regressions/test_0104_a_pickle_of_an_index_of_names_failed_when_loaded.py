"""`pickle.dumps` took a SimhashIndex, and `loads` found no index: its folder was temporary."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from simindex.compat.simhash import Simhash, SimhashIndex


def test_an_index_is_not_pickled_or_copied(tmp_path: Path) -> None:
    """At once, and not where it would be loaded."""
    with SimhashIndex([("a", Simhash(5))], path=tmp_path / "i.sim") as index:
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="give it a path"):
                copied(index)
        assert index.get_near_dups(Simhash(5)) == ["a"]
