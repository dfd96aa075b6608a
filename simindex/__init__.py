"""simindex: an embedded, persistent, on-disk index engine for near-duplicate search.

    import simindex

    recipe = simindex.Recipe()
    options = simindex.IndexOptions(keys=True, recipe=recipe)
    with simindex.open("pages.sim", "c", options=options) as index:
        index.append(recipe.batch(texts, keys=names))
        index.commit()
        for match in index.query(recipe.batch(["a text"]), h=3):
            print(match.key, match.distance)
"""

from importlib.metadata import version

from simindex.clustering import Cluster, Clusters
from simindex.errors import (
    ClosedIndex,
    CommitFailed,
    CorruptFile,
    FormatTooNew,
    FormatTooOld,
    IndexExists,
    IndexLocked,
    IndexNotFound,
    InvalidBatch,
    InvalidInput,
    InvalidOption,
    MissingExtra,
    ReadOnlyIndex,
    RecipeMismatch,
    SimindexError,
    StorageFailed,
    StorageFull,
    UnsupportedStorage,
)
from simindex.index import Index, open
from simindex.index_clusters import find_clusters
from simindex.methods.rotation import rotation_pairs
from simindex.options import IndexOptions
from simindex.pairing import CollapsedPairs, EqualRows
from simindex.pairs import find_all
from simindex.records import (
    Audit,
    Batch,
    Finding,
    Hot,
    IndexStats,
    Match,
    Matches,
    Pair,
    Pairs,
    QueryStats,
    RotationPairs,
    RotationStats,
    Skew,
    Skipped,
    SpotCheck,
    TopMatches,
    TopStats,
)
from simindex.simhash.anatomy import Feature
from simindex.simhash.bits import hamming
from simindex.simhash.document_frequencies import DocumentFrequencies
from simindex.simhash.fingerprint import Recipe

__version__ = version("simindex")

__all__ = [
    "Audit",
    "Batch",
    "ClosedIndex",
    "Cluster",
    "Clusters",
    "CollapsedPairs",
    "CommitFailed",
    "CorruptFile",
    "DocumentFrequencies",
    "EqualRows",
    "Feature",
    "Finding",
    "FormatTooNew",
    "FormatTooOld",
    "Hot",
    "Index",
    "IndexExists",
    "IndexLocked",
    "IndexNotFound",
    "IndexOptions",
    "IndexStats",
    "InvalidBatch",
    "InvalidInput",
    "InvalidOption",
    "Match",
    "Matches",
    "MissingExtra",
    "Pair",
    "Pairs",
    "QueryStats",
    "ReadOnlyIndex",
    "Recipe",
    "RecipeMismatch",
    "RotationPairs",
    "RotationStats",
    "SimindexError",
    "Skew",
    "Skipped",
    "SpotCheck",
    "StorageFailed",
    "StorageFull",
    "TopMatches",
    "TopStats",
    "UnsupportedStorage",
    "__version__",
    "find_all",
    "find_clusters",
    "hamming",
    "open",
    "rotation_pairs",
]
