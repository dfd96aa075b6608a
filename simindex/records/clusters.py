"""Clusters of near-duplicates, as calls return them.

    id               3   5   9   |   4   8    |   6        ordered by (cluster, id)
    cluster          3   3   3   |   4   4    |   6        the smallest id of the cluster
    representative   5   5   5   |   4   4    |   6        in a component the cluster itself
    distance         1   0   2   |   0   3    |   0
    size             3   3   3   |   2   2    |   1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simindex.arrays import F32, I64, U16, U64, Bools, picked
from simindex.records import arrow
from simindex.records.estimate import estimated, standard_error
from simindex.records.verification import Verification

Fetch = Callable[[I64], list[Any]]
"""Keys of documents by their places among the ids."""


class Cluster(NamedTuple):
    """A document, and the cluster that it belongs to."""

    id: int
    cluster: int
    representative: int
    distance: int
    size: int


class SimilarCluster(NamedTuple):
    """A document, its cluster, and how similar it is to the representative."""

    id: int
    cluster: int
    representative: int
    distance: int
    size: int
    similarity: float
    """Estimated, or exact where texts were compared."""
    similarity_error: float
    """Standard error of the similarity; 0 where that is exact."""


class Clusters:
    """Documents with their clusters, each once, ordered by (cluster, id).

    The columns `id`, `cluster` and `representative` are uint64, `distance` is uint16 and `size` is
    int64, all of shape (n,). Iteration gives `Cluster` objects, or `SimilarCluster` objects if a
    similarity was asked for.

    Parameters
    ----------
    ids : uint64 (D,)
        Ids of all documents, ascending.
    places, cluster, representative : integers (n,)
        Places among `ids`: of the listed documents, of the first document of their clusters, and of
        their representatives.
    mode : str
        ``"components"`` or ``"star"``.
    """

    __slots__ = (
        "_cluster", "_exact", "_fetch_keys", "_ids", "_places", "_representative", "distance",
        "measure", "mode", "similarity_bits", "size", "verification",
    )

    def __init__(
        self, ids: U64, places: NDArray[Any], cluster: NDArray[Any], representative: NDArray[Any],
        distance: U16, size: I64, mode: str, fetch_keys: Fetch | None = None, *,
        similarity_bits: int = 0, measure: str = "cosine", exact: F32 | None = None,
        verification: Verification | None = None,
    ) -> None:
        self._ids, self._places = ids, places
        self._cluster, self._representative = cluster, representative
        self.distance: U16 = distance
        self.size: I64 = size
        self.mode: str = mode
        self._fetch_keys = fetch_keys
        self.similarity_bits: int = similarity_bits
        """If a similarity was asked for: how many bits were compared for `distance`. Else 0."""
        self.measure: str = measure
        """What `similarity` is: ``"cosine"`` or ``"jaccard"``."""
        self._exact = exact
        self.verification: Verification | None = verification
        """How many pairs were compared by their texts. None unless texts were given."""

    def __reduce__(self) -> tuple[Any, ...]:
        fetch = self._fetch_keys
        if fetch is not None:
            # Keys are fetched where the index is; elsewhere they travel along.
            fetch = partial(_picked, fetch(np.arange(len(self._ids))))
        columns = (self._ids, self._places, self._cluster, self._representative)
        made = partial(
            Clusters, similarity_bits=self.similarity_bits, measure=self.measure,
            exact=self._exact, verification=self.verification,
        )
        return (made, (*columns, self.distance, self.size, self.mode, fetch))

    @property
    def similarity(self) -> F32 | None:
        """The cosine with the representative, float32 (n,): estimated, except where it is
        `exact`. None unless a similarity was asked for."""
        bits = self.similarity_bits
        if not bits:
            return None
        found = estimated(self.distance, bits, self.measure)
        exact = self._exact
        return found if exact is None else np.where(np.isnan(exact), found, exact)

    @property
    def similarity_error(self) -> F32 | None:
        """The standard error of `similarity`, float32 (n,): 0 where that is `exact`. None unless
        it was asked for.

        It is too small where few features have most of the weight of a text: often in texts of
        fewer than 50 features if the recipe has idf or the index no sketch, and in a text of any
        length if one word outweighs all others. It holds for all with ``projection="gaussian"``.
        docs/explanation/methods.md has the figures.
        """
        bits = self.similarity_bits
        if not bits:
            return None
        error = standard_error(self.distance, bits, self.measure)
        exact = self.exact
        return error if exact is None else np.where(exact, np.float32(0), error)

    @property
    def exact_similarity(self) -> F32 | None:
        """The similarity by the texts, float32 (n,), NaN where these were not compared. None unless
        texts were given."""
        return self._exact

    @property
    def exact(self) -> Bools | None:
        """Whether `similarity` was computed from the texts, bool (n,). None unless texts were
        given."""
        return None if self._exact is None else ~np.isnan(self._exact)

    @property
    def id(self) -> U64:
        """The ids of the documents, uint64 (n,)."""
        return _taken(self._ids, self._places)

    @property
    def cluster(self) -> U64:
        """The smallest id of each document's cluster, uint64 (n,)."""
        return _taken(self._ids, self._cluster)

    @property
    def representative(self) -> U64:
        """The id of the document to which `distance` is measured, uint64 (n,)."""
        return _taken(self._ids, self._representative)

    def __repr__(self) -> str:
        return (
            f"<{len(self)} documents in {self.clusters} Clusters of two or more, "
            f"{self.alone} in none>"
        )

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Cluster | SimilarCluster]:
        for some in self.slices(1 << 16):
            columns = [
                column.tolist() for column in (
                    some.id, some.cluster, some.representative, some.distance, some.size
                )
            ]
            similarity, error = some.similarity, some.similarity_error
            if similarity is None or error is None:
                yield from map(Cluster, *columns)
            else:
                yield from map(SimilarCluster, *columns, similarity.tolist(), error.tolist())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """All columns, and `key`, `cluster_key` and `representative_key` if there are keys; then
        `similarity` and `similarity_error`, if a similarity was asked for."""
        columns: dict[str, arrow.Column] = {}
        for name, ids, keys in (
            ("", self.id, self.keys()), ("cluster", self.cluster, self.cluster_keys()),
            ("representative", self.representative, self.representative_keys()),
        ):
            columns[name or "id"] = ids
            if keys is not None:
                columns[f"{name}_key".lstrip("_")] = keys
        columns |= {"distance": self.distance, "size": self.size}
        similarity, error = self.similarity, self.similarity_error
        if similarity is not None and error is not None:
            columns |= {"similarity": similarity, "similarity_error": error}
        return arrow.stream(columns)

    @property
    def documents(self) -> int:
        """Number of all documents, including those that are not listed."""
        return len(self._ids)

    @property
    def clusters(self) -> int:
        """Number of clusters of two documents or more."""
        return int(np.count_nonzero((self._places == self._cluster) & (self.size > 1)))

    @property
    def largest(self) -> int:
        """Number of documents of the largest cluster. 0 if nothing is listed."""
        return int(self.size.max()) if len(self) else 0

    @property
    def alone(self) -> int:
        """Number of documents without a near-duplicate, listed or not."""
        return self.documents - int(np.count_nonzero(self.size > 1))

    def slices(self, most: int) -> Iterator[Clusters]:
        """The same clusters in parts of at most `most` documents."""
        for start in range(0, len(self), most):
            some = slice(start, start + most)
            yield self._some(some)

    def take(self, rows: I64) -> Clusters:
        """Some of these documents, by their rows here, in the given order."""
        return self._some(rows)

    def _some(self, rows: Any) -> Clusters:
        return Clusters(
            self._ids, self._places[rows], self._cluster[rows], self._representative[rows],
            self.distance[rows], self.size[rows], self.mode, self._fetch_keys,
            similarity_bits=self.similarity_bits, measure=self.measure,
            exact=None if self._exact is None else self._exact[rows],
            verification=self.verification,
        )

    def standing_for(self, rows: I64) -> Clusters:
        """The same with other representatives, given by their rows, and no distances to them."""
        unknown = np.zeros(len(self), np.uint16)
        return Clusters(
            self._ids, self._places, self._cluster, self._places[rows], unknown, self.size,
            self.mode, self._fetch_keys,
        )

    def keys(self) -> list[Any] | None:
        """The keys of the documents, fetched from the index. None if there are no keys."""
        return None if self._fetch_keys is None else self._fetch_keys(self._places)

    def cluster_keys(self) -> list[Any] | None:
        """The keys of the documents whose ids name the clusters."""
        return None if self._fetch_keys is None else self._fetch_keys(self._cluster)

    def representative_keys(self) -> list[Any] | None:
        """The keys of the representatives."""
        return None if self._fetch_keys is None else self._fetch_keys(self._representative)


def _picked(keys: list[Any], places: I64) -> list[Any]:
    found: list[Any] = picked(keys, places.tolist())
    return found


def _taken(ids: U64, places: NDArray[Any]) -> U64:
    column: U64 = ids[places]
    return column
