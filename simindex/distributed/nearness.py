"""What makes rows of shards near-duplicates: a radius, or a similarity that chooses one.

    h=3                 all shards search within 3 bits
    similarity=0.9      each shard searches within the radius of that similarity; sketches, if the
                        shards have them, keep or reject what is found, and distances are theirs

Shards of one collection have one recipe and one width of sketches, so that the similarity stands
for the same radius in each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from simindex.checks import require_distance
from simindex.index.index import Index
from simindex.planning.similarity import Similar, require_measure, similar


class Near(NamedTuple):
    """What a call was given, as `Index.query` and `Index.pairs` take it."""

    h: int | None
    similarity: float | None = None
    measure: str = "cosine"
    recall: float = 1.0
    """Of a similarity."""

    @property
    def options(self) -> dict[str, Any]:
        """What is passed on to an index."""
        if self.similarity is None:
            return {"h": self.h}
        return {"similarity": self.similarity, "measure": self.measure, "recall": self.recall}

    def similar_in(self, index: Index) -> Similar | None:
        """The similarity among rows of an index; None if there is a radius.

        Raises InvalidOption if it is out of range, or the recipe has no such measure.
        """
        if self.similarity is None:
            require_measure(self.measure, None, None)
            return None
        recipe = index.recipe
        return similar(
            self.similarity, h=self.h, recall=self.recall, bits=index.options.bits,
            sketch_bits=index.options.sketch_bits, measure=self.measure,
            recipe=recipe,
        )

    def radius_in(self, index: Index) -> int:
        """In how many bits rows of an index that are near may differ at most."""
        found = self.similar_in(index)
        h = index.h if found is None and self.h is None else self.h if found is None else found.h
        return require_distance(h, index.options.bits)

    def sketched_in(self, index: Index) -> bool:
        """Whether sketches decide, so that distances are theirs."""
        return self.similarity is not None and index.options.sketch_bits > 0
