"""A batch without its weights had forgotten which of its texts got no fingerprint.

`Index.replace` deletes the rows of such texts' keys, and a batch without weights left them.
"""

from __future__ import annotations

from pathlib import Path

import simindex

RECIPE = simindex.Recipe(sketch_bits=64)


def test_a_batch_without_weights_has_the_texts_that_were_skipped() -> None:
    """They say which keys have no document any more."""
    batch = RECIPE.batch(["some words of a page", ""], keys=["a", "b"])
    assert batch.without_weights().skipped == batch.skipped
    assert [skip.key for skip in batch.skipped] == ["b"]


def test_replace_without_weights_deletes_the_rows_of_an_emptied_page(tmp_path: Path) -> None:
    """As with weights."""
    options = simindex.IndexOptions(keys=True, recipe=RECIPE)
    with simindex.open(tmp_path / "i.sim", "n", options=options) as index:
        index.replace(RECIPE.batch(["some words of a page"], keys=["a"]).without_weights())
        index.commit()
        index.replace(RECIPE.batch([""], keys=["a"]).without_weights())
        index.commit()
        assert len(index) == 0
