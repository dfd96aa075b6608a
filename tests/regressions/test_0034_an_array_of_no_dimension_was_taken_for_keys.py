"""What fuzzing found: it has a length that cannot be asked for, and ended in TypeError."""

from __future__ import annotations

import numpy as np
import pytest

from simindex import Batch
from simindex.errors import InvalidBatch


def test_an_array_of_no_dimension_is_no_sequence_of_keys() -> None:
    with pytest.raises(InvalidBatch, match="sequence of str or bytes, not ndarray"):
        Batch(np.ones(1, np.uint64), keys=np.array("key"))
