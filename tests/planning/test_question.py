"""Options of a question: checked once, and never trusted for being equal to others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import simindex
from simindex.errors import InvalidOption
from simindex.planning.question import REMEMBERED, Questions


@pytest.mark.parametrize("option", ["h", "recall", "method", "memory", "memory_limit"])
@pytest.mark.parametrize("value", [[3], np.arange(2), {}, None, "3", 3.5], ids=repr)
def test_an_option_of_a_wrong_type_is_refused_by_name(option: str, value: Any) -> None:
    if value is None and option in ("memory", "memory_limit"):
        return
    questions = Questions(64)
    for _ in range(2):
        with pytest.raises(InvalidOption) as refused:
            questions.asked(**{option: value})
        assert refused.value.data["option"] == option


def test_a_flag_that_is_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(InvalidOption, match="first"):
        Questions(64).asked(first=np.arange(2))  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [[1], np.arange(2), {}], ids=repr)
def test_threads_that_are_no_number_are_refused_where_they_are_counted(
    tmp_path: Any, threads: Any
) -> None:
    with simindex.open(tmp_path / "i.sim", "n") as index:
        index.append(np.arange(5, dtype=np.uint64))
        index.commit()
        with pytest.raises(InvalidOption):
            index.query(np.arange(2, dtype=np.uint64), threads=threads)


def test_a_question_is_made_once() -> None:
    questions = Questions(64)
    assert questions.asked(h=2) is questions.asked(h=2)
    assert questions.asked(h=2) is not questions.asked(h=3)


def test_equal_options_of_another_type_are_checked_by_themselves() -> None:
    questions = Questions(64)
    questions.asked(h=1, first=True)
    with pytest.raises(InvalidOption):
        questions.asked(h=True)
    with pytest.raises(InvalidOption):
        questions.asked(h=1.0)  # type: ignore[arg-type]


def test_so_many_questions_are_remembered_and_no_more() -> None:
    questions = Questions(4096)
    for h in range(3 * REMEMBERED):
        questions.asked(h=h)
        assert len(questions._known) <= REMEMBERED
