"""Facts for a plan that sizes do not show, read from a snapshot before the plan is made.

    carried          which structures its segments have
    within, top      what the methods' surveys find in each table, for a radius or a max_error
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from simindex.errors import CorruptFile
from simindex.planning import registry
from simindex.planning.conditions import Carried
from simindex.planning.question import TopQuestion
from simindex.planning.registry import Method, Survey, Surveys
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import Table

log: logging.Logger = logging.getLogger(__package__)


def carried(snapshot: Snapshot) -> Carried:
    """The structures of a snapshot."""
    segments = snapshot.segments
    return Carried(
        snapshot.designs, snapshot.slices is not None, len(segments),
        tuple(segment.name for segment in segments if segment.slices is None),
    )


def within(
    tables: Sequence[Table], methods: Sequence[Method], h: int, *, needed: bool
) -> Surveys:
    """What the surveys of these methods find in each table within h; None for nothing.

    A damaged structure is left with a warning, unless it is `needed`: then CorruptFile is raised.
    """
    return _surveyed(tables, {row.name: row.survey for row in methods}, h, needed=needed)


def top(tables: Sequence[Table], question: TopQuestion) -> Surveys:
    """The same of the methods that may find the nearest documents, for the question's max_error."""
    method, max_error = question.method, question.max_error
    assert max_error is not None
    surveys = {
        name: row.top.survey
        for name, row in registry.METHODS.items()
        if row.top is not None and method in ("auto", name)
    }
    return _surveyed(tables, surveys, max_error, needed=method != "auto")


def _surveyed(
    tables: Sequence[Table], surveys: Mapping[str, Survey | None], bits: int, *, needed: bool
) -> Surveys:
    def found(survey: Survey, table: Table) -> Any:
        try:
            return survey(table, bits)
        except CorruptFile as error:
            if needed:
                raise
            log.warning("other methods answer instead of a damaged structure: %s", error)
            return None

    return {
        name: [found(survey, table) for table in tables]
        for name, survey in surveys.items() if survey is not None
    }
