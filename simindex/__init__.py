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

import atexit
import logging  # noqa: F401 - its own locks are taken by a fork once imports have ended
from importlib import _bootstrap, import_module
from os import register_at_fork
from sys import modules
from time import monotonic, sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simindex.advising.recommendation import calibrate
    from simindex.bits.hamming import hamming
    from simindex.errors import (
        ClosedIndex,
        ClusterFailed,
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
    from simindex.planning.pair_explanation import explain_pair
    from simindex.query.explanation import Explanation, TopExplanation
    from simindex.records.advice import (
        Advice,
        CalibrationReport,
        EditRates,
        PairRates,
        Rate,
        SimilarityRates,
    )
    from simindex.records.batch import Batch, Skipped
    from simindex.records.clusters import Cluster, Clusters, SimilarCluster
    from simindex.records.gate import GateLimits, GateReport
    from simindex.records.matches import Match, Matches, QueryStats, TopMatches, TopStats
    from simindex.records.pair_explanation import (
        Dominance,
        FeaturePair,
        FlippedBit,
        PairExplanation,
        WordChange,
    )
    from simindex.records.pairs import (
        CollapsedPairs,
        EqualRows,
        Pair,
        Pairs,
        RotationPairs,
        RotationStats,
        SimilarPair,
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
    from simindex.records.verification import Verification
    from simindex.repair.rebuild import repair
    from simindex.simhash.document_frequencies import DocumentFrequencies
    from simindex.simhash.recipe import Recipe
    from simindex.simhash.weighting import Feature

__version__: str = "0.1.0"

__all__ = [
    "Advice",
    "Audit",
    "BackupReport",
    "Batch",
    "Calibration",
    "CalibrationReport",
    "ClosedIndex",
    "Cluster",
    "ClusterFailed",
    "Clusters",
    "CollapsedPairs",
    "CommitFailed",
    "Compaction",
    "CorruptFile",
    "DocumentFrequencies",
    "Dominance",
    "EditRates",
    "EqualRows",
    "Explanation",
    "Feature",
    "FeaturePair",
    "Finding",
    "FlippedBit",
    "FormatTooNew",
    "FormatTooOld",
    "GateLimits",
    "GateReport",
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
    "PairExplanation",
    "PairRates",
    "Pairs",
    "QueryStats",
    "Rate",
    "ReadOnlyIndex",
    "Recipe",
    "RecipeMismatch",
    "RepairReport",
    "RotationPairs",
    "RotationStats",
    "SimilarCluster",
    "SimilarPair",
    "SimilarityRates",
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
    "Verification",
    "WordChange",
    "__version__",
    "calibrate",
    "explain_pair",
    "find_all",
    "find_clusters",
    "hamming",
    "open",
    "repair",
    "rotation_pairs",
]

_HOMES = {
    "advising.recommendation": ("calibrate",),
    "bits.hamming": ("hamming",),
    "errors": (
        "ClosedIndex", "ClusterFailed", "CommitFailed", "CorruptFile", "FormatTooNew",
        "FormatTooOld", "IndexExists", "IndexLocked", "IndexNotFound", "InvalidBatch",
        "InvalidInput", "InvalidOption", "MissingExtra", "ReadOnlyIndex", "RecipeMismatch",
        "SimindexError", "StorageFailed", "StorageFull", "TooManyMatches", "UnsupportedStorage",
    ),
    "index.index": ("Index",),
    "index.opening": ("open",),
    "options": ("IndexOptions",),
    "pairs.clusters": ("find_clusters",),
    "pairs.find_all": ("find_all",),
    "pairs.rotation": ("rotation_pairs",),
    "planning.calibration": ("Calibration",),
    "planning.pair_explanation": ("explain_pair",),
    "planning.machine": ("Machine",),
    "query.explanation": ("Explanation", "TopExplanation"),
    "records.advice": (
        "Advice", "CalibrationReport", "EditRates", "PairRates", "Rate", "SimilarityRates",
    ),
    "records.batch": ("Batch", "Skipped"),
    "records.clusters": ("Cluster", "Clusters", "SimilarCluster"),
    "records.gate": ("GateLimits", "GateReport"),
    "records.matches": ("Match", "Matches", "QueryStats", "TopMatches", "TopStats"),
    "records.pair_explanation": (
        "Dominance", "FeaturePair", "FlippedBit", "PairExplanation", "WordChange",
    ),
    "records.pairs": (
        "CollapsedPairs", "EqualRows", "Pair", "Pairs", "RotationPairs", "RotationStats",
        "SimilarPair",
    ),
    "records.reports": (
        "Audit", "BackupReport", "Compaction", "Finding", "Hot", "IndexStats", "RepairReport",
        "Skew", "SpotCheck",
    ),
    "records.verification": ("Verification",),
    "repair.rebuild": ("repair",),
    "simhash.document_frequencies": ("DocumentFrequencies",),
    "simhash.recipe": ("Recipe",),
    "simhash.weighting": ("Feature",),
}
"""Module -> public names. The same as the imports above, which only type checkers carry out."""

_HOME = {name: module for module, names in _HOMES.items() for name in names}

import_module("simindex.repair")
del globals()["repair"]  # the folder of this name, so that the function is what is found

_FORK_PATIENCE_S = 10.0
"""How long a fork waits for imports of other threads."""


def _wait_for_imports() -> None:
    """Before a fork: a child has no thread to finish an import, and would wait for it for ever."""
    patience_ends = monotonic() + _FORK_PATIENCE_S
    locks = getattr(_bootstrap, "_module_locks", {})  # by the names of what is being imported
    while monotonic() < patience_ends and any(
        name.startswith(("simindex", "numpy")) for name in list(locks)
    ):
        sleep(0.001)


register_at_fork(before=_wait_for_imports)


@atexit.register
def _end_threads() -> None:
    """The last of what is called at the exit, for it was registered before what follows."""
    if "simindex._kernels" in modules:
        modules["simindex._kernels"]._native.end_threads()


if not TYPE_CHECKING:  # to a type checker, every name would be one of the module

    def __getattr__(name: str) -> object:
        """A public name, whose module is imported when the name is first used."""
        if name not in _HOME:
            # Python suggests a name that `__dir__` lists.
            raise AttributeError(
                f"module 'simindex' has no attribute {name!r}", name=name, obj=modules[__name__]
            )
        value = getattr(import_module(f"simindex.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
