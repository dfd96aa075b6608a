"""The replay of power cuts is able to fail: each wrong order of writes, syncs and names is caught.

They stand behind the object that all changes of the disk go through, so nothing of the product is
changed; the same workloads in the right order leave no state that is not what was promised.
"""

from __future__ import annotations

import pytest
from reliability import orders, power_loss
from reliability.recorder import Recorder
from reliability.workloads import Workload

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

SEED, MOST = 6, 30

COUNTS: dict[str, tuple[int, int]] = {}
"""Wrong order -> states judged, and those of them that are not what was promised."""


@pytest.mark.parametrize("order", orders.ORDERS, ids=lambda order: order.__name__)
def test_wrong_order_is_caught(order: type[Recorder]) -> None:
    base, *operations = orders.ORDERS[order]
    verdict = power_loss.tried(
        Workload(base, tuple(operations)), SEED, draws=0, most=MOST, recorder=order
    )
    bad = sum(kind in ("lost", "wrong", "leaked") for kind, _ in verdict.faults)
    COUNTS[order.__name__] = len(verdict.states), bad
    assert bad >= 1
    assert bad == len(verdict.faults), verdict.faults


@pytest.mark.parametrize("workload", sorted(set(orders.ORDERS.values())), ids=" ".join)
def test_right_order_is_not(workload: tuple[str, ...]) -> None:
    base, *operations = workload
    verdict = power_loss.tried(Workload(base, tuple(operations)), SEED, draws=0, most=MOST)
    COUNTS["right " + " ".join(workload)] = len(verdict.states), len(verdict.faults)
    assert verdict.faults == []


def test_all_orders_were_tried(capsys: pytest.CaptureFixture[str]) -> None:
    """Five of any storage engine, and those that this one could have got wrong."""
    assert len(orders.ORDERS) >= 12
    with capsys.disabled():
        print(f"\nseeded orders, seed {SEED}, states that are not what was promised:")
        for name, (tried, bad) in COUNTS.items():
            print(f"  {name}: {bad} of {tried}")
