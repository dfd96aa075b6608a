"""The throughput models of [PSM] section 6, equation by equation.

    (8) - (15)   bphs_...           T = C(G, g) tables, each looked up by binary search
    (17)         bphs_batch_s       T tables over the queries of a batch
    (18)         rate               queries a second, where the file is read meanwhile
    (19) - (22)  psm_...            one table, k flips under headers of t bits
    (23)         psm_batch_s        a batch, the file in chunks

They follow the paper to the letter: one row compared at a time, every probe waiting for memory,
fingerprints alone stored. (16) is in `simindex.planning.cold_calls`.

The papers' letters: b bits of a fingerprint, d = log2 n, h, k flips, t header bits, G blocks of
which g lead, T tables.
"""

from __future__ import annotations

from math import comb, factorial, floor, log2

from simindex.planning.machine import Machine


def bphs_tables(blocks: int, leading: int) -> int:
    """T = C(G, g), the choices of leading blocks."""
    return comb(blocks, leading)


def bphs_header_bits(blocks: int, leading: int, b: int, d: float) -> float:
    """t = min(g b / G, d), the bits that a binary search matches. [PSM] (8)."""
    return min(leading * b / blocks, d)


def bphs_latency_ns(machine: Machine, blocks: int, leading: int, b: int, d: float) -> float:
    """Time of one query in T tables of 2^d rows. [PSM] (9)."""
    t = bphs_header_bits(blocks, leading, b, d)
    scanned = 2 ** (d - t) * machine.delta_l_ns
    return bphs_tables(blocks, leading) * (machine.delta_p_ns + t * machine.delta_r_ns + scanned)


def bphs_bytes(tables: int, n: int, b: int) -> int:
    """T n b / 8. [PSM] (10)."""
    return tables * n * b // 8


def bphs_wide_latency_ns(machine: Machine, blocks: int, leading: int, b: int, d: float) -> float:
    """(9) where headers are narrower than d, g b / G <= d. [PSM] (11)."""
    lookups = factorial(blocks - 1) * b // (
        factorial(blocks - leading) * factorial(leading - 1)
    )
    scanned = 2 ** (d - leading * b / blocks) * machine.delta_l_ns
    return lookups * machine.delta_r_ns + comb(blocks, leading) * (machine.delta_p_ns + scanned)


def bphs_deep_latency_ns(machine: Machine, blocks: int, leading: int, d: float) -> float:
    """(9) where headers are wider than d, g b / G > d. [PSM] (12)."""
    searched = d * machine.delta_r_ns + machine.delta_l_ns
    return comb(blocks, leading) * (machine.delta_p_ns + searched)


def bphs_best_latency_ns(machine: Machine, g: int, h: int, b: int, d: float) -> float:
    """(9) with the fewest blocks that are exact for h, G = g + h. [PSM] (13), (14)."""
    return bphs_latency_ns(machine, g + h, g, b, d)


def bphs_most_leading(h: int, b: int, d: float) -> int:
    """The largest g whose header is not wider than d, d h / (b - d), and at least 1. [PSM] (15).

    More tables match d bits at most.
    """
    return max(1, floor(d * h / (b - d))) if d < b else max(1, b - h)


def bphs_design(machine: Machine, h: int, b: int, d: float) -> tuple[int, int]:
    """(G, g) of the least latency (14), among the g of (15)."""
    most = min(bphs_most_leading(h, b, d), max(1, b - h))
    g = min(range(1, most + 1), key=lambda g: bphs_best_latency_ns(machine, g, h, b, d))
    return g + h, g


def psm_latency_ns(machine: Machine, k: int, t: float, d: float) -> float:
    """Time of one query that tries k flips under t header bits of 2^d rows. [PSM] (19)."""
    scanned = 2 ** max(d - t, 0) * machine.delta_l_ns
    return k * (machine.delta_v_ns * _log2(k) + machine.delta_r_ns + scanned)


def psm_most_flips(t: int, h: int) -> int:
    """Flip sets of at most h of t bits: the bound of k(t). [PSM] (20)."""
    return sum(comb(t, i) for i in range(1, min(h, t) + 1))


def psm_best_latency_ns(machine: Machine, k: int) -> float:
    """(19) at t = d, where it is least. [PSM] (21)."""
    return k * (machine.delta_v_ns * _log2(k) + machine.delta_r_ns + machine.delta_l_ns)


def psm_bytes(t: int, n: int, b: int) -> int:
    """A hash table of 2^t headers, and one table: 2 n b / 8 at t = d. [PSM] (22)."""
    return ((1 << t) + n) * b // 8


def _log2(k: int) -> float:
    return log2(k) if k > 1 else 0.0


def bphs_batch_s(machine: Machine, tables: int, m: int, n: int, latency_ns: float) -> float:
    """Seconds of the processor for a batch: T m (delta P + log2 m) + n tau(log m). [PSM] (17).

    T tables are built of the batch, and every stored row looked up in them, in `latency_ns` =
    tau(log m). The paper's log2 m is taken as delta S log2 m: its unit is else no time.
    """
    built = tables * m * (machine.delta_p_ns + machine.delta_s_ns * log2(m))
    return (built + n * latency_ns) * 1e-9


def psm_batch_s(machine: Machine, k: int, m: int, n: int, latency_ns: float) -> float:
    """m delta V log2 k + n tau'(log m) + m delta S log2 m, in seconds. [PSM] (23).

    The file is read in chunks of m rows, in each of which every query is looked up in `latency_ns`
    = tau'(log m).
    """
    made = m * machine.delta_v_ns * (log2(k) if k > 1 else 0.0)
    return (made + n * latency_ns + m * machine.delta_s_ns * log2(m)) * 1e-9


def rate(m: int, disk_seconds: float, cpu_seconds: float) -> float:
    """Queries a second, reading and computing at the same time: m / max(...). [PSM] (18)."""
    return m / max(disk_seconds, cpu_seconds)
