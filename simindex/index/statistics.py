"""What an index holds, counted."""

from __future__ import annotations

from pathlib import Path

from simindex.index.skew import hottest
from simindex.options import IndexOptions
from simindex.records.reports import Audit, IndexStats, SpotCheck
from simindex.simhash.recipe import Recipe
from simindex.storage.snapshot import Snapshot


def gather(
    path: Path,
    snapshot: Snapshot,
    *,
    options: IndexOptions,
    recipe: Recipe | None,
    catalog_bytes: int,
    skew: bool = False,
    audit: Audit | None = None,
    spot_checks: list[SpotCheck],
    flips_from: dict[int, str],
) -> IndexStats:
    """The counts of a snapshot; see `Index.stats`."""
    structures: dict[str, int] = {}
    for segment in snapshot.segments:
        for structure in segment.record.structures:
            bytes_before = structures.get(structure.structure, 0)
            structures[structure.structure] = bytes_before + structure.file_bytes
    segment_bytes = sum(segment.envelope.file_bytes for segment in snapshot.segments)
    segment_bytes += sum(structures.values())
    live = snapshot.stored_rows - snapshot.dead_rows
    return IndexStats(
        path=str(path),
        generation=snapshot.head.generation,
        rows=live,
        dead_rows=snapshot.dead_rows,
        segments=len(snapshot.segments),
        pending_rows=snapshot.head.pending_rows,
        tombstones=len(snapshot.tombstones),
        bits=options.bits,
        keys=options.keys,
        bytes_segments=segment_bytes,
        bytes_catalog=catalog_bytes,
        bytes_per_row=(segment_bytes + catalog_bytes) / live if live else 0.0,
        recipe=None if recipe is None else recipe.to_dict(),
        sample_rows=len(snapshot.reservoir),
        segment_list=[
            {
                "name": segment.name,
                "rows": len(segment),
                "bytes": segment.envelope.file_bytes,
                "header_bits": segment.header_bits,
                "structures": {
                    structure.structure: structure.file_bytes
                    for structure in segment.record.structures
                },
            }
            for segment in snapshot.segments
        ],
        structures={name: structures.get(name, 0) for name in options.structures}
        | structures,
        skew=hottest(snapshot.tables) if skew else None,
        audit=audit,
        spot_checks=spot_checks,
        flips_from=flips_from,
    )
