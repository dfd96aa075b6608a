"""How long a call takes whose files are on the disk only, and not in memory.

    read ahead     by sweeps of likely flips, tables over the queries and scans: in order, by a
                   thread, so that a call takes the longer of reading and computing, [PSM] (18)
    touched        by probes on their own: what is touched is read with megabytes around it, and a
                   call takes the sum of both
    in order       by a sweep of permuted tables: the system itself reads ahead, a little
    ids            those of matches are touched, or read ahead where nearly all pages have some

The papers' letters: b bits of a fingerprint, D bytes a second, m queries, n rows.
"""

from __future__ import annotations

from simindex.methods import psm
from simindex.methods.base import TablePlan, reaches
from simindex.planning.machine import Machine
from simindex.values import dataclass

AROUND_BYTES = 8 << 20
"""What the system reads around a touched byte."""

PAGE_BYTES = 1 << 12
"""What it reads where it was told that no more is needed, as a pass over the rows does for ids."""

HIDDEN_SHARE = 0.5
"""Of the shorter of reading and computing, where the system alone reads ahead. 6 M rows, three
tables, 192 MB at 1.8 GB/s: 100,000 queries take 0.041 s, and from a cold file 0.105; a million 0.30
and 0.36."""

MATCHED_SHARE = 0.5
"""Of the queries that have a match, as long as nobody says how many have one."""

ID_BYTES = 8


def disk_s(machine: Machine, n: int, b: float) -> float:
    """Seconds to read n rows of b bits, n b / (8 D). [PSM] (16)."""
    return n * b / (8 * machine.disk_bytes_s)


def cold_bytes(n: int, words: int, plan: TablePlan, m: int) -> tuple[float, float]:
    """Bytes that a call of m queries reads of n rows and their ids: ahead, and touched.

    That is n (b + 64) / 8 for many queries and one table: ids are next to the rows.
    """
    tables = 1 if plan.takes_a_pass(m) or plan.design is None else len(plan.widths)
    rows = float(tables * n * 8 * words)
    ids = n * ID_BYTES
    if plan.takes_a_pass(m):
        if plan.method != psm.NAME:
            return rows, min(ids, MATCHED_SHARE * m * PAGE_BYTES)
        if psm.reads_all_ids(n, m):
            return rows + ids, 0.0
        return rows, min(ids, MATCHED_SHARE * m * AROUND_BYTES)
    if plan.probes:  # else all rows are compared
        rows = min(rows, m * plan.probes * AROUND_BYTES)
    return 0.0, rows + min(ids, MATCHED_SHARE * m * AROUND_BYTES)


@dataclass(frozen=True, slots=True)
class Call:
    """What a call takes whose files are on the disk only."""

    processor_s: float
    read_bytes: float
    hideable_bytes: float
    """Of these, what is read while the processor computes."""
    hidden_share: float
    """The part of the shorter of both that is hidden behind the longer."""

    def seconds(self, machine: Machine) -> float:
        """By the speed of the machine's disk: where all is hidden, the m / rate of [PSM] (18)."""
        read, hideable = (disk_s(machine, 1, 8 * b) for b in (self.read_bytes, self.hideable_bytes))
        return self.processor_s + read - self.hidden_share * min(self.processor_s, hideable)

    def times(self, segments: int) -> Call:
        """Of so many tables, one after the other."""
        return Call(
            segments * self.processor_s, segments * self.read_bytes,
            segments * self.hideable_bytes, self.hidden_share,
        )


def cold_call(n: int, words: int, plan: TablePlan, m: int, cpu_s: float) -> Call:
    """A call of m queries in a table of n rows, of which the processor takes `cpu_s`."""
    ahead, touched = cold_bytes(n, words, plan, m)
    if plan.design is not None and reaches(m, plan.swept_from):
        return Call(cpu_s, touched, touched, HIDDEN_SHARE)
    return Call(cpu_s, ahead + touched, ahead, 1.0)
