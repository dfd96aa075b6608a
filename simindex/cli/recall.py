"""Measured recall in words."""

from __future__ import annotations

from simindex.cli.console import count
from simindex.records.reports import Audit, SpotCheck


def audited(audit: Audit) -> str:
    """What an audit found: recall with its 95% interval, on what, and how it was asked."""
    if not audit.rows:
        return "recall unknown: the index keeps no weights of its rows"
    if audit.recall is None:
        return f"recall unknown: none of {audit.rows:,} sampled rows has a match"
    return (
        f"{_interval(audit)} at h={audit.h}, asked {audit.asked:g}, on "
        f"{count(audit.rows_with_match, 'row')} with a match of {audit.rows:,}, commit "
        f"{audit.generation}; by {audit.method}, {audit.guarantee}"
    )


def spot_checked(check: SpotCheck) -> str | None:
    """What repeated queries found; None if none of them has a match."""
    if check.recall is None:
        return None
    return (
        f"{_interval(check)} measured on {count(check.repeated, 'query', 'queries')} of "
        f"{check.queries:,} that were repeated exactly, {check.with_match:,} with a match"
    )


def _interval(measured: Audit | SpotCheck) -> str:
    return (
        f"recall {measured.recall:.4f} ({measured.recall_low:.4f} - {measured.recall_high:.4f})"
    )
