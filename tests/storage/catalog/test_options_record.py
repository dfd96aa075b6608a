"""Options that the catalog stores are read back, or refused."""

from __future__ import annotations

import pytest

from simindex import IndexOptions
from simindex.errors import CorruptFile
from simindex.storage.catalog.options_record import stored_options
from simindex.storage.catalog.values import pack

SECRET = bytes(range(200, 216))


def test_stored_options_with_keys_have_a_secret() -> None:
    whole = IndexOptions(keys=True, key_secret=SECRET).to_dict()
    assert stored_options(pack(whole)).key_secret == SECRET
    for other in (None, b"", bytes(15), "0" * 16, 7):
        with pytest.raises(CorruptFile, match="meta/options"):
            stored_options(pack({**whole, "key_secret": other}))
    with pytest.raises(CorruptFile, match="no secret"):
        stored_options(pack({name: whole[name] for name in whole if name != "key_secret"}))
    with pytest.raises(CorruptFile, match="key_secret"):
        stored_options(pack({**IndexOptions().to_dict(), "key_secret": SECRET}))
