"""A tokenizer that joined its words again made features of single letters; None was a TypeError."""

from __future__ import annotations

import textwrap

import pytest

from simindex import InvalidBatch, Recipe


def nothing(text: str) -> None:
    """Forgets to return."""


@pytest.mark.parametrize("tokenizer", [textwrap.dedent, nothing])
def test_what_is_no_list_of_words_is_refused(tokenizer: object) -> None:
    with pytest.raises(InvalidBatch, match="for text 0: let it return words"):
        Recipe(tokenizer=tokenizer).batch(["some words"])  # type: ignore[arg-type]
