"""The tables and the chart of docs/explanation/scaling.md, from constants that were measured.

    <!-- NAME -->        in the page: what follows, up to <!-- end -->, is written by `write`

Nothing is measured here, so equal constants give an equal page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import log10
from pathlib import Path

from charts import GRID, OURS, PEER, SECOND, TEXT, _svg, _text

from simindex.distributed import plan_shards
from simindex.planning.fleet import Fleet, ShardWork, shard_work
from simulation.asking import Asked, ask
from simulation.building import Built, build
from simulation.cluster import Load
from simulation.real import Constants, usual_outline

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "explanation" / "scaling.md"
CHART = DOCS / "plots" / "scaling.svg"

PAGES = 8_000_000_000
TEXT_BYTES = 8 * 10**12
DOCUMENT_BYTES = 2_200
"""Of the 8 TB: 300 words, as of the documents that were measured."""
BATCH = 1_000_000
MACHINES = (10, 20, 50, 100, 200, 500, 1000)
PRICE_H = 0.8
"""Of a machine of 16 cores, assumed."""


@dataclass(frozen=True, slots=True)
class Case:
    """A collection on a fleet."""

    rows: int
    fleet: Fleet
    text_bytes: int = 0

    def asked(self, load: Load | None = None) -> Asked:
        """Batches of a million."""
        found, (fleet, work) = _constants(), self._work()
        return ask(
            fleet, work, batch=BATCH, query_bytes=8, rates=found.rates, load=load,
            disk_bytes_s=found.machine.disk_bytes_s,
        )

    def built(self, load: Load | None = None) -> Built:
        """From its texts."""
        found, (fleet, work) = _constants(), self._work()
        return build(
            fleet, work, text_bytes=self.text_bytes, rates=found.rates, load=load,
            disk_bytes_s=found.machine.disk_bytes_s,
        )

    def _work(self) -> tuple[Fleet, ShardWork]:
        fleet = self.fleet.checked(self.rows)
        outline = usual_outline(-(-self.rows // (fleet.shards or 1)), _constants().machine)
        return fleet, shard_work(outline, fleet, BATCH)

    @property
    def memory_bytes(self) -> float:
        """Of a machine."""
        fleet, work = self._work()
        return -(-(fleet.shards or 1) * fleet.replicas // fleet.machines) * work.memory_bytes


@cache
def _constants() -> Constants:
    return Constants.read()


def told(seconds: float) -> str:
    """With three digits."""
    for unit, length in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= 1.5 * length or unit == "s":
            return f"{seconds / length:.3g} {unit}"
    raise AssertionError


def _table(heading: str, rows: list[tuple[object, ...]]) -> str:
    columns = heading.count("|") + 1
    lines = [f"| {heading} |", "|" + "---:|" * columns]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def collection(rows: int, text_bytes: int, machines: tuple[int, ...] = (10, 50, 200, 1000)) -> str:
    """Build, batch, rate, memory and cost by the number of machines."""
    found: list[tuple[object, ...]] = []
    for number in machines:
        case = Case(rows, Fleet(number), text_bytes)
        built_s, batch = case.built().seconds, case.asked()
        many = case.asked(Load(batches=40, in_flight=4))
        cost = built_s / 3600 * number * PRICE_H
        found.append((
            f"{number:,}", f"{case.memory_bytes / 1e9:.3g} GB", told(built_s), f"${cost:.3g}",
            told(batch.batch_s[0]), f"{40 * BATCH / many.seconds / 1e6:.3g} M",
        ))
    return _table(
        "machines | tables of a machine | build | its cost | a batch | queries/s, 4 in flight",
        found,
    )


def manku() -> str:
    """200 machines of one core: the size of the published run."""
    fleets = (
        ("1", "disk", Fleet(200, cores=1, memory_bytes=1)), ("1", "memory", Fleet(200, cores=1)),
        ("16", "memory", Fleet(200)),
    )
    return _table("machines | cores of each | tables in | a batch of a million", [
        (200, cores, where, told(Case(PAGES, fleet).asked().batch_s[0]))
        for cores, where, fleet in fleets
    ])


EVENTS: tuple[tuple[str, Load], ...] = (
    ("nothing", Load()),
    ("a machine in twenty takes 4 times as long", Load(slow_share=0.05)),
    ("a shard has 4 times the rows and queries of others", Load(hot=4.0)),
    ("a machine is lost after 50 ms", Load(lost_at_s=0.05)),
)


def events() -> str:
    """What goes wrong, with one copy of each shard, four times as many shards, and two copies."""
    cases = (Fleet(50), Fleet(50, shards=200), Fleet(50, replicas=2))
    return _table("what happens | 50 shards | 200 shards | 25 shards, 2 copies", [
        (label, *(told(Case(PAGES, fleet).asked(load).batch_s[0]) for fleet in cases))
        for label, load in EVENTS
    ])


def build_events() -> str:
    """The same of a build."""
    cases = (Fleet(50), Fleet(50, shards=200))
    loads = (*EVENTS[:3], ("a machine is lost after 2 min", Load(lost_at_s=120.0)))
    return _table("what happens | 50 shards | 200 shards", [
        (label, *(told(Case(PAGES, fleet, TEXT_BYTES).built(load).seconds) for fleet in cases))
        for label, load in loads
    ])


def added() -> str:
    """Ten shards more while batches run."""
    load = Load(batches=60, added_at_s=1.0, added=10)
    found = Case(PAGES, Fleet(50)).asked(load)
    before = [s for s, n in zip(found.batch_s, found.shards, strict=True) if n == 50]
    after = [s for s, n in zip(found.batch_s, found.shards, strict=True) if n == 60]
    return _table("batches | shards asked | first | slowest | last", [
        (len(some), shards, *map(told, (some[0], max(some), some[-1])))
        for some, shards in ((before, 50), (after, 60))
    ])


def prefixes() -> str:
    """Shards by prefix are asked fewer queries."""
    rows: list[tuple[object, ...]] = []
    for h in (1, 3):
        share = plan_shards(PAGES, 64, by="prefix").asked(h) / 64
        case = Case(PAGES, Fleet(64))
        rows.append((
            h, f"{64 * share:.0f} of 64", told(case.asked().batch_s[0]),
            told(case.asked(Load(queries_share=share)).batch_s[0]),
            told(case.asked(Load(queries_share=share, hot=4.0)).batch_s[0]),
        ))
    return _table("h | shards that a query asks | by rows | by prefix | and shard 0 is hot", rows)


TABLES: dict[str, Callable[[], str]] = {
    "pages": lambda: collection(PAGES, PAGES * DOCUMENT_BYTES),
    "text": lambda: collection(TEXT_BYTES // DOCUMENT_BYTES, TEXT_BYTES, (10, 50, 200)),
    "manku": manku,
    "events": events,
    "build events": build_events,
    "added": added,
    "prefixes": prefixes,
}


def chart() -> str:
    """Seconds over machines, both logarithmic."""
    left, right, top, bottom, low, high = 90, 430, 48, 330, -2.0, 5.0

    def place(machines: float, seconds: float) -> tuple[float, float]:
        x = left + (right - left) * (log10(machines) - 1) / 2
        return x, bottom - (bottom - top) * (log10(seconds) - low) / (high - low)

    parts = []
    for seconds, words in (
        (0.01, "10 ms"), (0.1, "0.1 s"), (1, "1 s"), (60, "1 min"), (3600, "1 h"), (86400, "1 day")
    ):
        y = place(10, seconds)[1]
        parts.append(f'<path d="M{left} {y:.1f}H{right}" stroke="{GRID}"/>')
        parts.append(_text(left - 8, y + 5, words, anchor="end"))
    for machines in (10, 100, 1000):
        parts.append(_text(place(machines, 1)[0], bottom + 20, f"{machines:,}", anchor="middle"))
    slow, lost = Load(slow_share=0.05), Load(lost_at_s=0.05)
    built = [
        Case(PAGES, Fleet(n), PAGES * DOCUMENT_BYTES).built().seconds for n in MACHINES
    ]
    lines = [("build from texts", TEXT, built)]
    for label, colour, load in (
        ("a batch, a machine lost", PEER, lost), ("a batch, stragglers", SECOND, slow),
        ("a batch", OURS, Load()),
    ):
        lines.append((
            label, colour, [Case(PAGES, Fleet(n)).asked(load).batch_s[0] for n in MACHINES]
        ))
    for label, colour, times in lines:
        points = [place(*point) for point in zip(MACHINES, times, strict=True)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in points]
        x, y = points[-1]
        parts.append(_text(x + 12, y + 5, label, colour=colour))
    title = "8 billion pages: simulated times by the number of machines of 16 cores"
    return _svg(700, bottom + 34, title, parts)


def filled(page: str) -> str:
    """The page with its tables written anew."""
    for name, table in TABLES.items():
        found = re.fullmatch(rf"(.*<!-- {name} -->\n).*?(<!-- end -->.*)", page, re.DOTALL)
        if found is None:
            raise SystemExit(f"{PAGE} has no place for the table {name!r}")
        page = f"{found[1]}\n{table()}\n\n{found[2]}"
    return page


def write() -> None:
    """Writes the page and the chart."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    CHART.write_text(chart(), encoding="utf-8")
