"""simindex: an embedded, persistent, on-disk index engine for near-duplicate search.

    import simindex

    recipe = simindex.Recipe()
    options = simindex.IndexOptions(keys=True, recipe=recipe)
    with simindex.open("pages.sim", "c", options=options) as index:
        index.append(recipe.batch(texts, keys=names))
        index.commit()
        for match in index.query("a text"):
            print(match.key, match.distance)
"""

from typing import Any

from simindex.bits.hamming import hamming
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
    TooManyMatches,
    UnsupportedStorage,
)
from simindex.index.index import Index
from simindex.index.opening import open
from simindex.options import IndexOptions
from simindex.pairs.clusters import find_clusters
from simindex.pairs.find_all import find_all
from simindex.pairs.rotation import rotation_pairs
from simindex.planning.calibration import Calibration
from simindex.planning.machine import Machine
from simindex.query.explanation import Explanation, TopExplanation
from simindex.records.batch import Batch, Skipped
from simindex.records.clusters import Cluster, Clusters
from simindex.records.matches import Match, Matches, QueryStats, TopMatches, TopStats
from simindex.records.pairs import (
    CollapsedPairs,
    EqualRows,
    Pair,
    Pairs,
    RotationPairs,
    RotationStats,
)
from simindex.records.reports import (
    Audit,
    BackupReport,
    Compaction,
    Finding,
    Hot,
    IndexStats,
    RepairReport,
    Skew,
    SpotCheck,
)
from simindex.repair.rebuild import repair
from simindex.simhash.document_frequencies import DocumentFrequencies
from simindex.simhash.recipe import Recipe
from simindex.simhash.weighting import Feature

__version__: str

__all__ = [
    "Audit",
    "BackupReport",
    "Batch",
    "Calibration",
    "ClosedIndex",
    "Cluster",
    "Clusters",
    "CollapsedPairs",
    "CommitFailed",
    "Compaction",
    "CorruptFile",
    "DocumentFrequencies",
    "EqualRows",
    "Explanation",
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
    "Machine",
    "Match",
    "Matches",
    "MissingExtra",
    "Pair",
    "Pairs",
    "QueryStats",
    "ReadOnlyIndex",
    "Recipe",
    "RecipeMismatch",
    "RepairReport",
    "RotationPairs",
    "RotationStats",
    "SimindexError",
    "Skew",
    "Skipped",
    "SpotCheck",
    "StorageFailed",
    "StorageFull",
    "TooManyMatches",
    "TopExplanation",
    "TopMatches",
    "TopStats",
    "UnsupportedStorage",
    "__version__",
    "find_all",
    "find_clusters",
    "hamming",
    "open",
    "repair",
    "rotation_pairs",
]


def __getattr__(name: str) -> Any:
    """`__version__`, from the package's metadata: reading them would slow every import."""
    if name != "__version__":
        raise AttributeError(f"module 'simindex' has no attribute {name!r}")
    from importlib.metadata import version

    return version("simindex")
