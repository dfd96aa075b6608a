"""SplitMix64: numbers that look random, each a fixed function of a number."""

from __future__ import annotations

import numpy as np

from simindex.arrays import U64

STEP = np.uint64(0x9E3779B97F4A7C15)
"""From one state of the generator to the next."""


def mixed(states: U64) -> U64:
    """What the generator gives after each of some states."""
    values = states + STEP
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
