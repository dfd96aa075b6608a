"""Every pair of a sample is counted once, near or not."""

from __future__ import annotations

import numpy as np
import pytest

from simindex import Recipe
from simindex.advising import sample_pairs as module
from simindex.advising.sample_pairs import between, columns, standing
from simindex.planning.similarity import similar
from simindex.query.sketch_filter import distances
from simindex.simhash.vectors import vectors_of


def texts(count: int) -> list[str]:
    random = np.random.default_rng(1)
    made = []
    for place in range(count):
        words = [f"w{number}" for number in random.integers(0, 500, 60)]
        made.append(" ".join(words))
        if place % 3 == 0 and len(made) > 1:
            changed = [*words]
            for at in random.integers(0, 60, place % 13):
                changed[at] = "changed"
            made[-2] = " ".join(changed)
    return made


@pytest.mark.parametrize("most", [120_000, 40])
def test_weights_and_others_add_up_to_all_pairs(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(module, "MOST_PAIRS", most)
    made = [*texts(300), *["the same text over and over"] * 60]
    recipe = Recipe(sketch_bits=1024)
    batch = recipe.batch(made)
    assert batch.sketch is not None
    assert batch.sketches is not None
    rows, sketched = columns(batch)
    seen: list[tuple[int, int]] = []
    found = standing(rows, sketched, vectors_of(recipe, made), (512, 1024), 0,
                     lambda done, of: seen.append((done, of)))
    pairs = len(made) * (len(made) - 1) // 2
    assert found.weight.sum() + found.others.sum() == pytest.approx(pairs)
    assert seen[-1] == (len(made), len(made))
    assert (found.a < found.b).all()
    assert len({*zip(found.a.tolist(), found.b.tolist(), strict=True)}) == len(found.a)
    assert (found.distance == between(rows[found.a], rows[found.b])).all()
    asked = similar(0.9, h=None, recall=1.0, bits=64, sketch_bits=1024, recipe=recipe)
    wide = distances(batch.sketches, found.a, batch.sketches, found.b, asked)
    assert (found.sketched[1024] == wide).all()
    if most > 1000:
        assert (found.weight == 1).all()
        a, b = np.triu_indices(len(made), 1)
        near = between(batch.sketch[a], batch.sketch[b]) <= module.threshold(0.6, 1024)
        assert near.sum() == len(found.a)
    else:
        assert found.weight.max() > 1
    equal = found.cosine > 1 - 1e-9
    assert found.weight[equal].sum() == pytest.approx(60 * 59 / 2, rel=0.2)
