"""An option with a lone surrogate was refused with a UnicodeEncodeError, naming no option."""

from __future__ import annotations

import pytest

from simindex import InvalidOption, Recipe


@pytest.mark.parametrize(
    "wrong", [{"stop_words": ["a", "\ud800"]}, {"tokenizer": "m:\udfff"}, {"stemmer": "\ud800/3.1"}]
)
def test_options_that_utf8_cannot_hold_are_refused_by_name(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidOption) as caught:
        Recipe(**wrong)  # type: ignore[arg-type]
    assert caught.value.data["option"] in wrong
