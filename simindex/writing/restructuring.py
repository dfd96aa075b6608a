"""Other permuted tables and slice lists for the same rows: the structures of an index change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from simindex.errors import CorruptFile
from simindex.options import checked_structures
from simindex.storage.catalog.catalog import Edit
from simindex.storage.catalog.sealed_values import pack
from simindex.storage.files.checksums import verified
from simindex.storage.segment_files import checked_designs, slice_design
from simindex.storage.tables import permuted, slice_lists
from simindex.storage.tables.record import StructureRecord
from simindex.storage.tables.segment import Segment
from simindex.writing.committer import Committer


def restructure(committer: Committer, structures: Sequence[str]) -> bool:
    """Gives all segments these structures, in one commit; returns whether anything changed.

    Tables and lists that are there and undamaged stay; their files are read to know it.
    """
    committer.check_usable()
    snapshot, files = committer.alone(), committer.files
    options = replace(committer.view.options, structures=checked_structures(structures))
    designs, slices = checked_designs(options), slice_design(options)
    edit = Edit(snapshot.value, snapshot.head)
    if options.structures != committer.view.options.structures:
        edit.set_value("options", pack(options.to_dict()))
    added: list[str] = []
    dropped: list[str] = []
    try:
        for segment in snapshot.segments:
            kept = [
                s for s in segment.record.structures
                if s.structure in options.structures and _sound(segment, s)
            ]
            stale = [s.name for s in segment.record.structures if s not in kept]
            names = {structure.structure for structure in kept}
            record = replace(segment.record, structures=tuple(kept))
            missing = [design for design in designs if design.structure not in names]
            lists = None if slices is None or slices.structure in names else slices
            if not stale and not missing and lists is None:
                continue
            if missing or lists is not None:
                segment.envelope.verify()
            made, directories = files.beside(
                record, segment.fingerprints, missing, lists, edit.head.generation
            )
            added += [structure.name for structure in made]
            dropped += stale
            edit.change_structures(
                segment.record, replace(record, structures=(*kept, *made)), directories
            )
        if not edit.puts:
            return False
    except BaseException:
        files.remove_named(added)
        raise
    committer.finish(edit, added)
    files.remove_named(dropped)
    return True


def _sound(segment: Segment, structure: StructureRecord) -> bool:
    """Whether a segment's tables or lists are whole, and are those that its rows make."""
    lists = segment.slices
    try:
        rows = verified(segment.fingerprints)
        if lists is not None and lists.record == structure:
            lists.envelope.verify()
            wrong = slice_lists.disorder(lists, rows)
        else:
            tables = segment.structures[structure.structure]
            tables.envelope.verify()
            wrong = permuted.disorder(tables, permuted.content_sum(rows))
        return next(wrong, None) is None
    except CorruptFile:
        return False
