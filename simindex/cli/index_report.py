"""Asks an index for all that the page about it tells, in bounded memory.

    stats            rows, files, crowded buckets
    pairs            distances of different fingerprints, counted as they come
    clusters         sizes, and the largest ones with some of their documents
    forecast         what each structure would cost
    inputs           texts of the documents that are shown, and of no others

Files are never opened because a key names them: an index may come from somebody else. Texts come
from inputs that the caller names.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import simindex
from simindex.cli.console import audited, compacted, count
from simindex.cli.description import KEYS, features_of, moment
from simindex.cli.progress import Progress
from simindex.cli.questions import as_row
from simindex.cli.stored_documents import as_stored
from simindex.errors import InvalidOption, TooManyMatches
from simindex.outputs.columns import key_text
from simindex.reporting.index_report import (
    Chance,
    Clustering,
    Cost,
    Family,
    IndexReport,
    Member,
    Near,
    Pairing,
    Segment,
    Template,
    sizes_of,
)
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.arrays import I64
    from simindex.cli.input_options import Reading
    from simindex.inputs.document import Intake
    from simindex.planning.similarity import Similar
    from simindex.records.clusters import Clusters
    from simindex.records.reports import IndexStats

MOST_PAIRS = 200_000_000
"""Pairs that are counted; a template of a hundred thousand different rows has more."""

SIMILARITIES = (0.99, 0.95, 0.9, 0.85, 0.8, 0.7, 0.5)

MANY_TIMES = 4
"""A bucket is crowded with so many times the rows of the average."""

EXAMPLES = 3
"""Documents that are named for a fingerprint of many rows."""

MOST_SEGMENTS = 50

TEXT_CHARACTERS = 60_000
"""Of a text that is shown, more than side_by_side compares."""

MILLION = 1_000_000


@dataclass(slots=True)
class Reporter:
    """Makes the report of an index that is open."""

    index: simindex.Index
    name: str
    h: int
    families: int
    """Clusters that are shown."""
    members: int
    """Documents of each that are shown."""
    memory_limit: int | None
    threads: int | None
    progress: Progress
    similar: Similar | None = None
    """The similarity that is asked for, with its radius, if one is."""
    recall: float = 1.0
    """With it."""
    stats: IndexStats = field(init=False)
    notes: list[str] = field(default_factory=list)

    def report(self, *, nearness: bool) -> IndexReport:
        """All but texts; `nearness` is whether pairs and clusters are looked for."""
        from simindex.index.gate_nearness import USUAL_SIMILARITY

        held = self.stats = self.index.stats(skew=True)
        own = self.index.options
        pairing = self._pairing() if nearness and held.rows else None
        clustering = self._clustering() if nearness and held.rows else None
        costs, measured = self._costs()
        skew = held.skew
        crowded = [] if skew is None else [
            Template(hot.value, hot.rows) for hot in skew.headers
            if hot.rows >= max(2, MANY_TIMES * skew.rows_per_header)
        ]
        return IndexReport(
            path=self.name, version=simindex.__version__,
            made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", facts=self._facts(), rows=held.rows,
            dead_rows=held.dead_rows, size_bytes=held.bytes_segments + held.bytes_catalog,
            bytes_a_row=held.bytes_per_row, bits=held.bits, sketch_bits=own.sketch_bits, h=self.h,
            segments=self._segments(),
            structures=[(name, size) for name, size in held.structures.items()],
            pairing=pairing, clustering=clustering, near=self._near(),
            gate_similarity=USUAL_SIMILARITY,
            chances=self._chances(), strangers=self._strangers(),
            audit=None if held.audit is None else audited(held.audit), costs=costs,
            measured=measured, equal=self._equal(), crowded=crowded,
            header_bits=0 if skew is None else skew.header_bits,
            rows_per_header=0.0 if skew is None else skew.rows_per_header, notes=self.notes,
        )

    def _facts(self) -> list[tuple[str, str]]:
        held = self.stats
        facts = [
            ("fingerprint", f"{held.bits:,} bits, of {features_of(held.recipe)}"),
            ("sketch", f"{self.index.options.sketch_bits:,} bits"
             if self.index.options.sketch_bits else "none"),
            ("radius", f"{self.h} bits" + ", of candidates" * (self.similar is not None)),
            ("keys", KEYS[held.keys]),
            ("commit", f"{held.generation:,}"),
            ("deleted", f"{held.dead_rows:,} rows, whose space a compaction frees"
             if held.dead_rows else "none"),
        ]
        recipe = held.recipe or {}
        if recipe.get("documents"):
            facts.insert(1, (
                "learned from", f"{recipe['documents']:,} documents, {recipe['features']:,} "
                "different features",
            ))
        if held.oldest is not None:
            facts.append(("oldest row", moment(held.oldest)))
        if (gain := compacted(held.compaction)) is not None:
            facts.append(("files", gain))
        return facts

    def _segments(self) -> list[Segment]:
        listed = [
            Segment(str(one["name"]), int(one["rows"]), one.get("bytes"))
            for one in self.stats.segment_list[:MOST_SEGMENTS]
        ]
        left = len(self.stats.segment_list) - len(listed)
        if left:
            self.notes.append(f"{count(left, 'more file')} of rows")
        if self.stats.pending_rows:
            listed.append(Segment("waiting for a file", self.stats.pending_rows, None))
        return listed

    @property
    def _asked(self) -> dict[str, Any]:
        """How pairs and clusters are asked for."""
        near = self._near()
        if near is None:
            return {"h": self.h}
        return {"similarity": near.similarity, "measure": near.measure, "recall": self.recall}

    def _near(self) -> Near | None:
        found = self.similar
        if found is None:
            return None
        asked = found.similarity if found.asked is None else found.asked
        return Near(asked, found.measure, found.most, found.compared_bits)

    def _pairing(self) -> Pairing:
        import numpy as np

        most = self.h if self.similar is None else self.similar.most
        by_distance = np.zeros(most + 1, np.int64)
        equal = total = 0
        self.progress.then("pairing", "row")
        parts: Any = self.index.pairs(
            **self._asked, collapse_equal=True, memory_limit=self.memory_limit,
            threads=self.threads, progress=self.progress.tell,
        )
        cut = False
        with closing(parts):
            for part in parts:
                by_distance += np.bincount(part.distance, minlength=most + 1)
                equal += len(part.groups.row)
                total += len(part)
                if total >= MOST_PAIRS:
                    cut = True
                    break
        if self.similar is None:
            return Pairing(by_distance.tolist(), equal, cut)
        return Pairing(by_distance.tolist(), equal, cut, by_similarity(by_distance, self.similar))

    def _clustering(self) -> Clustering | None:
        import numpy as np

        found = self._clusters()
        if found is None:
            return None
        starts = np.flatnonzero(np.append(True, found.cluster[1:] != found.cluster[:-1])) if len(
            found
        ) else np.empty(0, np.int64)
        sizes = found.size[starts]
        of_size, number = np.unique(sizes, return_counts=True)
        listed = list(zip(of_size.tolist(), number.tolist(), strict=True))
        alone = [(1, found.alone)] if found.alone else []
        # By size; of equal size the order is that of ids, which is another in each index.
        largest = starts[np.argsort(-sizes, kind="stable")[: self.families]]
        return Clustering(
            mode=found.mode, documents=found.documents, alone=found.alone,
            clusters=found.clusters, largest=found.largest, sizes=sizes_of([*alone, *listed]),
            families=[self._family(found, int(start)) for start in largest],
        )

    def _clusters(self) -> Clusters | None:
        for mode in ("star", "components"):
            self.progress.then("clustering", "row")
            try:
                return self.index.clusters(
                    **self._asked, mode=mode, singletons=False, memory_limit=self.memory_limit,
                    threads=self.threads, progress=self.progress.tell,
                )
            except TooManyMatches:
                self.notes.append(
                    "The pairs take too much memory for clusters around a representative, so "
                    "clusters are chains of near-duplicates."
                )
        return None

    def _family(self, found: Clusters, start: int) -> Family:
        """The cluster that begins at a row: its representative, and documents near to far."""
        import numpy as np

        size = int(found.size[start])
        rows = np.arange(start, start + size)
        is_first = found.id[rows] == found.representative[start]
        others = rows[~is_first]
        others = others[np.argsort(found.distance[others], kind="stable")]
        if len(others) > self.members - 1:
            steps = np.linspace(0, len(others) - 1, self.members - 1).round().astype(np.int64)
            others = others[steps]
        some = found.take(np.concatenate([rows[is_first], others]))
        keys: Any = some.keys() or some.id.tolist()
        similarity = some.similarity
        near = [None] * len(some) if similarity is None else similarity.tolist()
        return Family(size, [
            Member(named(key), distance, estimate)
            for key, distance, estimate in zip(keys, some.distance.tolist(), near, strict=True)
        ])

    def _chances(self) -> list[Chance]:
        from simindex.bits.cosine import share_within
        from simindex.index.gate_nearness import USUAL_SHARE, USUAL_SIMILARITY
        from simindex.planning.similarity import similar

        own = self.index.options
        asked = self.similar or similar(
            USUAL_SIMILARITY, h=None, recall=USUAL_SHARE, bits=own.bits,
            sketch_bits=own.sketch_bits,
        )
        return [
            Chance(
                similarity, share_within(self.h, similarity, own.bits),
                None if not own.sketch_bits else share_within(asked.h, similarity, own.bits)
                * share_within(asked.most, similarity, own.sketch_bits),
            )
            for similarity in SIMILARITIES
        ]

    def _strangers(self) -> float:
        from simindex.bits.cosine import share_within

        return self.stats.rows * share_within(self.h, 0.0, self.index.options.bits)

    def _costs(self) -> tuple[list[Cost], bool]:
        from simindex.planning.forecast import forecast

        machine = self.index.machine
        if not self.stats.rows:
            return [], machine.measured
        here = self.stats.structures
        try:
            lines = forecast(
                self.stats.rows, h=self.h, bits=self.stats.bits, machine=machine
            )
        except InvalidOption as error:
            self.notes.append(f"No cost is predicted: {error.what}.")
            return [], machine.measured
        costs = [
            Cost(
                one.method, one.recall, one.disk_bytes_per_row, one.memory_bytes, one.queries_s,
                MILLION / one.batch_queries_s[MILLION], one.method in here,
            )
            for one in lines
        ]
        return sorted(costs, key=lambda cost: (not cost.here, -cost.queries_s)), machine.measured

    def _equal(self) -> list[Template]:
        if self.stats.skew is None:
            return []
        listed = []
        for hot in self.stats.skew.fingerprints:
            words = [int(hot.value[at : at + 16], 16) for at in range(0, len(hot.value), 16)]
            found = self.index.query(as_row(words), h=0, limit=EXAMPLES)
            names: Sequence[Any] = found.keys() or found.id.tolist()
            listed.append(Template(hot.value, hot.rows, sorted(map(named, names))))
        return listed


def by_similarity(by_distance: I64, similar: Similar) -> list[tuple[str, int]]:
    """Pairs by their estimated similarities, in steps of 0.01 from 1 down."""
    import numpy as np

    from simindex.records.estimate import estimated

    distance = np.arange(len(by_distance), dtype=np.uint16)
    estimate = estimated(distance, similar.compared_bits, similar.measure).astype(np.float64)
    step = np.minimum(99, np.floor(100 * estimate + 1e-6)).astype(np.int64)
    counted = np.bincount(99 - step, by_distance)
    return [
        (f"{(99 - place) / 100:.2f}", round(number)) for place, number in enumerate(counted)
    ]


def named(key: Any) -> str:
    """A key or an id as text."""
    return str(key) if isinstance(key, int) else key_text(key) or ""


def texts_of(
    report: IndexReport, index: simindex.Index, reading: Reading, inputs: Sequence[str],
    intake: Intake,
) -> dict[str, str]:
    """The texts of the documents that the page shows, by their names, as the inputs have them."""
    if report.clustering is None:
        return {}
    wanted = {
        member.name for family in report.clustering.families for member in family.members
    }
    texts: dict[str, str] = {}
    documents = reading.named_for(index).documents(inputs, intake)
    for document in as_stored(index, documents):
        if document.key in wanted and document.key not in texts:
            texts[document.key] = document.text[:TEXT_CHARACTERS]
            if len(texts) == len(wanted):
                break
    return texts
