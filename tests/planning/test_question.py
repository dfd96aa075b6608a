"""Options of a question: checked once, and never trusted for being equal to others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import simindex
from simindex.errors import InvalidOption
from simindex.planning import registry
from simindex.planning.memory_limit import without_limit
from simindex.planning.question import REMEMBERED, Question, Questions, TopQuestions


@pytest.mark.parametrize("option", ["h", "recall", "method", "memory", "memory_limit"])
@pytest.mark.parametrize("value", [[3], np.arange(2), {}, None, "3", 3.5], ids=repr)
def test_an_option_of_a_wrong_type_is_refused_by_name(option: str, value: Any) -> None:
    if value is None and option in ("memory", "memory_limit"):
        return
    questions = Questions(64)
    for _ in range(2):
        with pytest.raises(InvalidOption) as refused:
            questions.asked(**{"h": 3, option: value})
        assert refused.value.data["option"] == option


def test_a_flag_that_is_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(InvalidOption, match="first"):
        Questions(64).asked(h=3, first=np.arange(2))  # type: ignore[arg-type]


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


TOP = {"k": 3, "max_error": "auto", "rerank": None, "method": "auto", "threads": None, "width": 8}


@pytest.mark.parametrize("recall", [np.float32(0.5), np.float64(0.5), np.array(0.5), 0.5], ids=repr)
def test_a_recall_is_the_same_number_of_either_question(recall: Any) -> None:
    for found in (
        Questions(64).asked(h=3, recall=recall), TopQuestions().asked(**TOP, recall=recall)
    ):
        assert type(found.recall) is float and found.recall == 0.5


@pytest.mark.parametrize(
    "recall", [0, 1.5, float("nan"), True, np.True_, "0.5", 1j, np.array([0.5]), 10**400], ids=repr
)
def test_what_is_no_recall_is_refused_by_either_question(recall: Any) -> None:
    for ask in (
        lambda: Questions(64).asked(h=3, recall=recall),
        lambda: TopQuestions().asked(**TOP, recall=recall),
    ):
        with pytest.raises(InvalidOption, match="is not a share") as refused:
            ask()
        assert refused.value.data["option"] == "recall"


def test_a_question_for_the_nearest_carries_its_threads_and_is_planned_without() -> None:
    questions = TopQuestions()
    one, two = (questions.asked(**{**TOP, "threads": n}, recall=0.9) for n in (1, 2))
    assert (one.threads, two.threads) == (1, 2)
    assert one == two and hash(one) == hash(two)
    assert questions.asked(**{**TOP, "threads": 1}, recall=0.9) is one


def test_questions_for_the_nearest_are_remembered_up_to_a_bound() -> None:
    questions = TopQuestions()
    for k in range(1, 3 * REMEMBERED):
        questions.asked(**{**TOP, "k": k}, recall=0.9)
        assert len(questions._known) <= REMEMBERED


@pytest.mark.parametrize("method", registry.names())
def test_a_limited_call_rests_on_plans_without_one(method: str) -> None:
    """Those that are exact anyway need nothing but the rows."""
    asked = Question(2, True, 0.9, method, memory=7, memory_limit=9, threads=2)
    usual = without_limit(asked)
    assert usual.memory is usual.memory_limit is None
    assert (usual.h, usual.first, usual.threads) == (2, True, 2)
    lossy = method in ("auto", "psm")
    assert (usual.method, usual.recall) == ((method, 0.9) if lossy else ("scan", 1.0))
