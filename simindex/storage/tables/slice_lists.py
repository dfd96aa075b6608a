"""The slice lists of a segment [ISSL section 2]: a `.issl` file next to the `.rows`.

    row i        0110...1 1010...0 ...     cut into s slices of w bits, bit 63 of word 0 first
                 slice 0  slice 1
    starts[j]    where the list of each value of slice j begins among numbers[j]
    numbers[j]   row numbers, list after list:   | rows with value 0 | with value 1 | ... |

    sections   1 numbers      uint32 (s, n)
               2 starts       uint32 (s, 2^w + 1)
               5 description  and the file's name: see `structure`

Invariants
1. Every list is contiguous, and its row numbers ascend: so a file is a function of the rows.
2. starts[j] begins with 0, never falls and ends with n; whoever follows it has it checked.
3. A row number is bounded where it is followed. Lists say which rows are worth a look, and no more:
   whatever they hold, distances are those of the rows themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np

from simindex._kernels import _native
from simindex.arrays import U32, U64
from simindex.errors import CorruptFile, InvalidOption
from simindex.options import is_slicing
from simindex.storage.files.checksums import verified
from simindex.storage.files.envelope import Envelope
from simindex.storage.files.envelope_writer import SectionSpec
from simindex.storage.tables.record import SegmentFolder, SegmentRecord, StructureRecord
from simindex.storage.tables.structure import (
    Structure,
    helps,
    new_structure,
    open_structure,
    stored_design,
)
from simindex.values import dataclass

NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{8}-[0-9a-f]{8}\.issl")

NUMBERS, STARTS = 1, 2

WIDE_BITS = 128
"""Fingerprints of this many bits or more are cut into slices of 16 bits, narrower ones of 8."""

COMPARED_BYTES = 1 << 26
"""Memory for building lists again, to compare them with those of a file."""

STEP_BITS = 256
"""Slices of this many bits are built at once, if memory allows; then `step` is called."""

BLOCK_ROWS = 64 * (16384 + 320)
"""Rows that the kernel turns into columns at a time: the more, the closer together lies what it
fills. No power of two, so that its streams do not all fall into the same sets of a cache."""

BLOCK_BYTES, PART_BLOCK_BYTES = 44, 12
"""Memory that it takes for a row of a block, and where it makes a slice in parts."""


@dataclass(frozen=True, slots=True)
class SliceDesign:
    """How fingerprints of b bits are cut into slices of w."""

    structure: str
    """As the index's options name it."""
    width: int
    """w, 8 or 16."""
    bits: int
    """b."""

    @classmethod
    def parse(cls, structure: str, bits: int) -> SliceDesign:
        """The design of `"issl"`, `"issl:w=8"` or `"issl:w=16"`; InvalidOption on another name."""
        if not is_slicing(structure):
            raise InvalidOption(
                f"{structure!r} is not the name of slice lists",
                remedy='give "issl", "issl:w=8" or "issl:w=16"', option="structures",
                found=structure,
            )
        _, _, width = structure.partition("=")
        return cls(structure, int(width) if width else 16 if bits >= WIDE_BITS else 8, bits)

    @property
    def slices(self) -> int:
        """s = b / w."""
        return self.bits // self.width

    @property
    def lists(self) -> int:
        """2^w: lists of a slice."""
        return 1 << self.width

    @property
    def steps(self) -> int:
        """How often `step` is called while lists are written."""
        return -(-self.bits // STEP_BITS)

    def list_bytes(self, rows: int) -> int:
        """Memory of the lists of `rows` rows: 4 (n s + 2^w s), and 4 s for the ends.

        Source: [ISSL] section 3.
        """
        return 4 * self.slices * (rows + self.lists + 1)


def write(
    folder: SegmentFolder,
    segment: SegmentRecord,
    fingerprints: U64,
    design: SliceDesign,
    *,
    generation: int,
    memory_bytes: int,
    step: Callable[[], None] | None = None,
) -> StructureRecord:
    """Makes the slice lists of a segment's rows durable; they are not part of the index yet.

    Parameters
    ----------
    fingerprints : uint64 (n, W)
        The segment's rows, in its order.
    memory_bytes : int
        The most that is held of them at a time; some MiB more are held back in whole huge pages
        of the file.
    step : function, optional
        Called after every 256 bits; what it raises ends the work, and no file stays.

    Notes
    -----
    As many slices are built at a time as fit the memory; each time the rows are read once, so that
    little memory costs time. Where not even one slice fits, it is built in parts, and the rows are
    read for each part.
    """
    sections = [
        SectionSpec(NUMBERS, 4, design.slices * len(fingerprints)),
        SectionSpec(STARTS, 4, design.slices * (design.lists + 1)),
    ]
    with new_structure(
        folder, segment, design.structure, sections, kind="issl", generation=generation
    ) as (name, envelope):
        for first, starts, parts in lists(fingerprints, design, memory_bytes):
            envelope.write(1, starts)
            for numbers in parts:
                envelope.write(0, numbers)
                del numbers  # before the next part is made
            done = (first + len(starts)) * design.width
            if step is not None and (
                done // STEP_BITS > first * design.width // STEP_BITS or done == design.bits
            ):
                step()
        checksum = envelope.finish()
    return StructureRecord(design.structure, name, envelope.file_bytes, checksum, 1, ())


def lists(
    fingerprints: U64, design: SliceDesign, memory_bytes: int
) -> Iterator[tuple[int, U32, Iterator[U32]]]:
    """The lists of some slices after the other: (first slice, starts (k, 2^w + 1), numbers).

    The numbers come in one or more parts, k n in all, each to be used before the next is asked for.
    """
    count, slices, width = len(fingerprints), design.slices, design.width
    # Half of the memory at most is the kernel's, and of that its counters come first.
    counters = 4 * design.lists * (STEP_BITS + 64) // width
    block = max(1, min(BLOCK_ROWS, count, (memory_bytes // 2 - counters) // BLOCK_BYTES))
    each = 4 * (count + design.lists + 1)
    fitting = (memory_bytes - counters - BLOCK_BYTES * block) // each
    if fitting < 1:
        yield from _in_parts(fingerprints, design, memory_bytes)
        return
    together = min(fitting, STEP_BITS // width)
    builder = _native.SliceBuilder(fingerprints, width, min(together, slices), block)
    for first in range(0, slices, together):
        starts, numbers = builder.lists(first, min(together, slices - first))
        yield first, starts, iter((numbers,))


def _in_parts(
    fingerprints: U64, design: SliceDesign, memory_bytes: int
) -> Iterator[tuple[int, U32, Iterator[U32]]]:
    """`lists` where the memory does not hold those of one slice."""
    count, width = len(fingerprints), design.width
    left = memory_bytes - 3 * 4 * (design.lists + 1)
    block = max(1, min(BLOCK_ROWS, count, left // 2 // PART_BLOCK_BYTES))
    most = max(1, (left - PART_BLOCK_BYTES * block) // 4)

    def parts(number: int, starts: U32) -> Iterator[U32]:
        for begin in range(0, count, most):
            size = min(most, count - begin)
            yield _native.slice_part(fingerprints, width, number, starts, begin, size, block)

    for number in range(design.slices):
        starts = _native.slice_starts(fingerprints, width, number, block)
        yield number, starts[None], parts(number, starts)


class SliceLists(Structure):
    """Slice lists of one segment, on a memory map; or what is wrong with them."""

    def __init__(
        self,
        record: StructureRecord,
        design: SliceDesign,
        envelope: Envelope | None,
        damage: CorruptFile | None = None,
    ) -> None:
        super().__init__(record, envelope, damage)
        self.design: SliceDesign = design
        self.width: int = design.width
        self.slices: int = design.slices
        self.checked: _native.CheckedSlices | None = None
        """What the searching kernels take; kept by `methods.issl`."""

    def check(self) -> None:
        """Raises CorruptFile if something is known to be wrong with the file."""
        self.envelope  # noqa: B018

    @cached_property
    def numbers(self) -> U32:
        """uint32 (s, n): row numbers, to be bounded where they are followed (invariant 3)."""
        return self._section(NUMBERS, self.envelope.identity.rows)

    @cached_property
    def starts(self) -> U32:
        """uint32 (s, 2^w + 1): checked against their checksums, and to be as invariant 2 says.

        Raises CorruptFile. 5 ms for 64 slices of 16 bits, once.
        """
        starts = verified(self._section(STARTS, self.design.lists + 1))
        envelope = self.envelope
        for number, own in enumerate(starts):
            if own[0] != 0 or own[-1] != envelope.identity.rows or (own[1:] < own[:-1]).any():
                raise CorruptFile(
                    f"{envelope.path} has lists of slice {number} that overlap or leave gaps",
                    remedy=helps(envelope.path), path=envelope.path, found=number,
                )
        return starts

    def _section(self, kind: int, columns: int) -> U32:
        envelope = self.envelope
        section = envelope.section(kind, "<u4")
        if section is None or len(section) != self.slices * columns:
            raise CorruptFile(
                f"{envelope.path} has sections that do not fit each other",
                remedy=helps(envelope.path), path=envelope.path,
            )
        return section.reshape(self.slices, columns)


def open_slices(
    folder: SegmentFolder, segment: SegmentRecord, record: StructureRecord
) -> SliceLists:
    """Maps the file a catalog record names, once file, record and segment agree.

    What is wrong with the file is kept in the result, to be raised when it is used; see
    `open_structure` of a file that is gone.
    """
    design = stored_design(record, folder.bits, SliceDesign.parse)
    envelope, damage = open_structure(folder, segment, record, directories=0)
    return SliceLists(record, design, envelope, damage)


def disorder(
    slices: SliceLists, fingerprints: U64, memory_bytes: int = COMPARED_BYTES
) -> Iterator[str]:
    """What is wrong with the lists of a file whose checksums hold; rebuilds them all.

    Raises CorruptFile where `SliceLists.starts` does.
    """
    count = len(fingerprints)
    for first, starts, parts in lists(fingerprints, slices.design, memory_bytes):
        stored = slices.numbers[first : first + len(starts)].reshape(-1)
        wrong = set(np.flatnonzero((starts != slices.starts[first : first + len(starts)]).any(1)))
        beyond = set()
        at = 0
        for numbers in parts:
            numbers = numbers.reshape(-1)
            found = stored[at : at + len(numbers)]
            if not np.array_equal(found, numbers):
                wrong |= set((at + np.flatnonzero(found != numbers)) // count)
                beyond |= set((at + np.flatnonzero(found >= count)) // count)
            at += len(numbers)
        for number in sorted(wrong):
            what = f"rows beyond its {count}" if number in beyond else "other rows than it should"
            yield f"slice {first + number} lists {what}"
