"""Errors say what happened and what to do, apart and together."""

from __future__ import annotations

import errno
import pickle
from pathlib import Path

import pytest

from simindex.errors import CorruptFile, FormatTooNew, SimindexError, StorageFull
from simindex.storage.files.format import check_version
from simindex.storage.files.refusals import refusal, remedied

PLACE = Path("pages.sim")


@pytest.mark.parametrize("remedy", [None, "run `simindex check`"])
def test_error_survives_a_pickle_with_its_remedy(remedy: str | None) -> None:
    """As those that a worker process passes on."""
    error = CorruptFile("a file is damaged", remedy=remedy, path="a file", offset=3)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
    assert type(again) is CorruptFile
    assert (again.what, again.remedy, again.data) == (error.what, error.remedy, error.data)
    assert str(again) == str(error) == "a file is damaged" + (f": {remedy}" if remedy else "")


def test_damage_without_a_remedy_names_the_repair() -> None:
    with pytest.raises(CorruptFile) as caught, remedied(PLACE):
        raise CorruptFile("a file is damaged", path="a file")
    assert caught.value.remedy == "`simindex repair pages.sim` says what can be had again"
    assert caught.value.what == "a file is damaged"


def test_damage_keeps_the_remedy_it_has() -> None:
    with pytest.raises(FormatTooNew) as caught, remedied(PLACE):
        check_version(PLACE, 99, 0, 0)
    assert caught.value.remedy == "install a newer simindex"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_told_in_one_sentence(code: int) -> None:
    found = refusal(OSError(code, "no room", "a file"), PLACE)
    assert isinstance(found, StorageFull)
    assert found.what == "no space left while writing a file"
    assert found.remedy == "free some and try again; the index holds its last commit"


def test_an_error_of_ours_is_not_translated_again() -> None:
    error = StorageFull("full")
    assert refusal(error, PLACE) is error
    assert isinstance(error, SimindexError)
