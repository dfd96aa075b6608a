"""Wilson's interval against its own equation."""

from __future__ import annotations

from fractions import Fraction

import pytest

from simindex.query.audit import wilson


@pytest.mark.parametrize("found", [0, 3, 17, 20])
def test_wilson_bounds_solve_its_equation(found: int) -> None:
    """(p - x)^2 = z^2 x (1 - x) / n at both ends, and z is that of 95%."""
    low, high = wilson(found / 20, 20)
    for x in (low, high):
        apart = (found / 20 - x) ** 2
        assert apart == pytest.approx(1.9599640**2 * x * (1 - x) / 20, abs=1e-8)
    assert 0 <= low <= found / 20 <= high <= 1
    assert wilson(float(Fraction(1, 2)), 0) == (0.0, 1.0)
