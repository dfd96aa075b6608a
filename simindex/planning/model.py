"""The batch equations of [PSM] section 6, which the forecast follows.

    (16) - (18)  disk_s, bphs_batch_s, rate    batches of m queries against a file of n rows
    (23)         psm_batch_s                   the same by PSM

These are the papers' forms. What the engine's own kernels take, which prefetch and compare eight
rows at once, stands in `costs`: the planner goes by that, and `forecast` by these equations with
its times. The other equations of the section stand in `tools/reproduce/model.py`.

The papers' letters: b bits of a fingerprint, k flips, m = |Q|, T tables.
"""

from __future__ import annotations

from math import log2

from simindex.planning.machine import Machine


def disk_s(machine: Machine, n: int, b: int) -> float:
    """Seconds to read the file of n rows, n b / (8 D). [PSM] (16)."""
    return n * b / (8 * machine.disk_bytes_s)


def bphs_batch_s(machine: Machine, tables: int, m: int, n: int, latency_ns: float) -> float:
    """Seconds of the processor for a batch: T m (delta P + log2 m) + n tau(log m). [PSM] (17).

    T tables are built of the batch, and every stored row looked up in them, in `latency_ns` =
    tau(log m). The paper's log2 m is taken as delta S log2 m: its unit is else no time.
    """
    built = tables * m * (machine.delta_p_ns + machine.delta_s_ns * log2(m))
    return (built + n * latency_ns) * 1e-9


def rate(m: int, disk_seconds: float, cpu_seconds: float) -> float:
    """Queries a second, reading and computing at the same time: m / max(...). [PSM] (18)."""
    return m / max(disk_seconds, cpu_seconds)


def psm_batch_s(machine: Machine, k: int, m: int, n: int, latency_ns: float) -> float:
    """m delta V log2 k + n tau'(log m) + m delta S log2 m, in seconds. [PSM] (23).

    The file is read in chunks of m rows, in each of which every query is looked up in `latency_ns`
    = tau'(log m).
    """
    made = m * machine.delta_v_ns * _log2(k)
    return (made + n * latency_ns + m * machine.delta_s_ns * log2(m)) * 1e-9


def _log2(k: int) -> float:
    return log2(k) if k > 1 else 0.0
