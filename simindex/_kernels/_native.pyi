"""The native kernels' signatures. Arrays are C-contiguous and little-endian; see `__init__`."""

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
I16 = NDArray[np.int16]
F64 = NDArray[np.float64]

def levels() -> list[str]: ...
def default_level() -> int: ...
def end_threads() -> None: ...
def expect_segments(count: int) -> None: ...

# bytes ------------------------------------------------------------------------------------------
def crc32c(data: U8, initial: int = 0, level: int = -1) -> int: ...
def crc32c_chunks(
    data: U8, chunk_bytes: int, seed: int, first_chunk: int = 0, level: int = -1
) -> U32: ...
def murmur3(data: U8, offsets: I64, seed: int = 0) -> U64: ...
def siphash(data: U8, offsets: I64, secret: U8) -> U64: ...
def siphash_key(key: bytes, secret: bytes) -> tuple[int, int]: ...
def check_pages(file: U8, meta: U8, exact: bool = False) -> tuple[int, int, int]: ...
def write_back(fd: int, offset: int, size: int, wait: bool) -> int: ...
def exchange(path: bytes, other: bytes) -> int: ...
def file_system(path: bytes) -> str: ...

# A section's bytes in chunks of 64 KiB, borrowed; each is compared with its sum when it is first
# verified, CorruptFile if it differs. What is verified is given by address.
class Verified:
    def __init__(
        self, data: U8, sums: U32, seed: int, path: bytes = b"", offset: int = 0, remedy: str = ""
    ) -> None: ...
    @property
    def address(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def left(self) -> int: ...
    def verify(self, address: int, size: int, threads: int = 1) -> None: ...
    def verify_spans(self, address: int, starts: I64, ends: I64) -> None: ...

# rows -------------------------------------------------------------------------------------------
def sort_rows(first_words: U64) -> I64: ...
def sort_pairs(keys: U64, payload: U64) -> tuple[U64, U64]: ...
def header_directory(first_words: U64, header_bits: int) -> U32: ...
def take_rows(values: U64, order: I64) -> U64: ...
def take_at(values: U64, rows: U32) -> U64: ...
def record_distances(
    some: U8, one: I64, others: U8, other: I64, level: int = -1
) -> U16: ...
def take_bytes(offsets: I64, data: U8, order: I64) -> tuple[I64, U8]: ...
def equal_bytes(
    offsets: I64, data: U8, rows: I64, other_offsets: I64, other_data: U8, other_rows: I64
) -> U8: ...
def arrange(
    query: I64, ids: U64, distance: U16, queries: int, with_order: bool = True, threads: int = 1
) -> tuple[I64, U64, U16, I64, bool]: ...

# text -------------------------------------------------------------------------------------------
Invalid = tuple[int, int]  # the first text that is no UTF-8, and the byte where; or (-1, -1)
Simhashes = tuple[U64, F32, I64, Invalid]
# bits (n, words + sketch_words), weights (n, 64 words), features counted to the minimum, or all
# with a sketch

# In how many documents each feature occurs: of several calls, one at a time, until it is taken.
class DocumentTables:
    def __init__(self) -> None: ...
    @property
    def features(self) -> int: ...  # what the tables hold; a feature may be in several
    # The features of table t, in the order that kept entries number them: from starts[t] to
    # starts[t + 1].
    def listed(self) -> tuple[U64, I64]: ...
    def take(self) -> tuple[U64, U32]: ...  # hashes ascend; nothing is left

class TextRecipe:
    def __init__(
        self,
        unit: int,
        pairs: bool,
        sizes: U8,
        seed: int,
        counting: int,
        with_idf: bool,
        idf: U64,
        unseen: int,
        sublinear: U32,
        projection: int,
        quantiles: I16,
        words: int,
        min_features: int,
        level: int = -1,
        sketch_words: int = 0,
    ) -> None: ...
    def texts(self, texts: list[Any], threads: int = 1) -> Simhashes: ...
    def column(self, data: U8, offsets: I64, threads: int = 1) -> Simhashes: ...
    def units(
        self, bytes: U8, starts: U64, ends: U64, offsets: I64, threads: int = 1
    ) -> Simhashes: ...
    def hashes(self, hashes: U64, offsets: I64, threads: int = 1) -> Simhashes: ...
    def given(self, hashes: U64, weights: F64, offsets: I64, threads: int = 1) -> Simhashes: ...
    def features(self, texts: list[Any]) -> tuple[U64, U32, I64, Invalid]: ...
    # Counts the features of documents into the tables; if a text is no UTF-8, some of them.
    def count_in_texts(
        self, tables: DocumentTables, texts: list[Any], threads: int = 1
    ) -> tuple[Invalid]: ...
    def count_in_column(
        self, tables: DocumentTables, data: U8, offsets: I64, threads: int = 1
    ) -> tuple[Invalid]: ...
    def count_in_units(
        self, tables: DocumentTables, bytes: U8, starts: U64, ends: U64, offsets: I64,
        threads: int = 1,
    ) -> tuple[Invalid]: ...
    # As count_in_column. Also entries, 256 times the number of a feature in its table plus how
    # often the document has it; offsets of these by document; and of each document its table,
    # characters and text_ends. Where the flag is False, a feature was beyond the 2**24 that have
    # numbers, and entries lack.
    def keep_of_column(
        self, tables: DocumentTables, data: U8, offsets: I64, threads: int = 1
    ) -> tuple[U32, I64, U32, I64, U64, bool, Invalid]: ...
    # Rows of such documents, with the tables as listed and the steps of their features.
    def kept(
        self, hashes: U64, steps: U32, starts: I64, entries: U32, offsets: I64, tables: U32,
        threads: int = 1,
    ) -> tuple[U64, F32, I64, Invalid]: ...
    def steps(self, hashes: U64) -> U32: ...
    def split(self, texts: list[Any]) -> tuple[U8, U64, U64, I64, Invalid]: ...
    # Puts the row of a text of up to 65,536 code units into place `count`. Returns 0 if no row of
    # those before or of the passages is within h; 1 if a search has to tell; 2 if it has too few
    # features; 3 if it is not UTF-8. Else the least distance, the first place that is so near, and
    # the number of a passage and its row that are so near; -1 where none is.
    # With `apart`, the row goes into the first place there, and `places` stay as they are. With a
    # baton, a thread that comes back waits awake for a moment until another has dropped it.
    def arrive(
        self, text: str | bytes, places: Places, count: int, passages: Passages,
        apart: Places | None = None, baton: Baton | None = None,
    ) -> int | tuple[int, int, int, int]: ...

def idf_buckets(hashes: U64, steps: U32) -> U64: ...
def characters(data: U8, offsets: I64) -> I64: ...  # of each text of a column
# Of each text a hash of its length, and of its first and last 64 bytes or all that there are.
def text_ends(data: U8, offsets: I64) -> U64: ...
# Of the texts a[i] and b[i], the products of the weights of their common features, added up: text i
# has the features and weights from starts[i] to starts[i + 1], each feature once, below width.
def dots(features: I64, weights: F64, starts: I64, width: int, a: I64, b: I64) -> F64: ...
def unicode_versions() -> tuple[str, str]: ...

# search -----------------------------------------------------------------------------------------
class NoRoom(MemoryError): ...

# How many matches the searches that are given it may return, all together. What they return stays
# taken until it is given back.
class Room:
    def __init__(self, matches: int) -> None: ...
    def take(self, matches: int) -> None: ...
    def give(self, matches: int) -> None: ...
    @property
    def left(self) -> int: ...

# Tables, each with an exact way through it, in which a row within h may be.
class Passages:
    def __init__(self, words: int, h: int) -> None: ...
    def scan(self, rows: U64, verified: Verified | None = None) -> None: ...
    def probe(self, table: CheckedTable, header_bits: int, flips: U64) -> None: ...
    def permuted(
        self, table: CheckedTable, header_bits: int, tables: list[CheckedPermuted]
    ) -> None: ...

# Columns with room for rows that come one at a time, written in place: rows (n, W), sketches
# (n, 8 S + 1) or (n, 0), weights (n, b) if they are kept.
class Places:
    def __init__(self, rows: U64, sketches: U8, weights: F32 | None = None) -> None: ...
    # Copies the first row of `apart` into place `count`. Returns the least distance of it to rows
    # from `first` on, and the first place that is so near; None if none is within h. It keeps the
    # interpreter's lock.
    def take(
        self, apart: Places, first: int, count: int, passages: Passages
    ) -> tuple[int, int] | None: ...

# Shared by threads that arrive beside each other: who of them runs Python.
class Baton:
    def __init__(self) -> None: ...

def probe(
    rows: U64,
    directory: U32,
    directory_bits: int,
    header_bits: int,
    queries: U64,
    flips: U64,
    h: int,
    first: bool,
    level: int = -1,
) -> tuple[I64, U32, U16, int, int]: ...
def vosh(
    weights: F32,
    costs: F32,
    cost_step: float,
    header_bits: int,
    h: int,
    flips: int,
    candidates: U8,
    sort_network: U8,
    select_network: U16,
    level: int = -1,
) -> U64: ...
def psm(
    rows: U64,
    directory: U32,
    directory_bits: int,
    header_bits: int,
    queries: U64,
    weights: F32,
    costs: F32,
    cost_step: float,
    h: int,
    flips: int,
    candidates: U8,
    sort_network: U8,
    select_network: U16,
    first: bool,
    level: int = -1,
) -> tuple[I64, U32, U16, int, int]: ...
class CheckedTable:
    def __init__(
        self,
        rows: U64,
        directory: U32,
        directory_bits: int,
        ids: U64,
        verified_rows: Verified | None = None,
        verified_ids: Verified | None = None,
    ) -> None: ...

class CheckedVosh:
    def __init__(
        self,
        costs: F32,
        cost_step: float,
        bits: int,
        header_bits: int,
        h: int,
        flips: int,
        candidates: U8,
        sort_network: U8,
        select_network: U16,
    ) -> None: ...

class CheckedPermuted:
    def __init__(
        self,
        rows: U64,
        directory: U32,
        directory_bits: int,
        header_bits: int,
        rotations: U64,
        inverse: U64,
        flips: U64,
        header: U64,
        most_flips: int,
        verified: Verified | None = None,
    ) -> None: ...

def bphs(
    table: CheckedTable,
    header_bits: int,
    tables: list[CheckedPermuted],
    queries: U64,
    h: int,
    first: bool,
    sweep_queries: int,
    level: int = -1,
    room: Room | None = None,
) -> tuple[I64, U32, U16, U64, int, int, int]: ...
def permute(rows: U64, rotations: U64, level: int = -1) -> U64: ...
def probe_checked(
    table: CheckedTable,
    header_bits: int,
    queries: U64,
    flips: U64,
    h: int,
    first: bool,
    level: int = -1,
    room: Room | None = None,
) -> tuple[I64, U32, U16, U64, int, int]: ...
def psm_checked(
    table: CheckedTable,
    vosh: CheckedVosh,
    queries: U64,
    weights: F32,
    first: bool,
    level: int = -1,
    room: Room | None = None,
    costs: U8 | None = None,
    most: int = 0,
) -> tuple[I64, U32, U16, U64, int, int]: ...
# The probes of a batch by partition of a table, the top bits of their headers: what partition_psm
# and partition_headers return.
class CheckedProbes:
    def __init__(self) -> None: ...
    @property
    def partitions(self) -> int: ...
    @property
    def size(self) -> int: ...

def partition_psm(
    table: CheckedTable, vosh: CheckedVosh, queries: U64, weights: F32, numbers: U32 | None,
    own: bool, keep: bool = True, level: int = -1,
) -> CheckedProbes: ...
def partition_headers(
    table: CheckedTable, header_bits: int, queries: U64, numbers: U32 | None, keep: bool = True
) -> CheckedProbes: ...
def sweep(
    table: CheckedTable, probes: CheckedProbes, h: int, begin: int, end: int,
    skip: NDArray[np.uint8] | None = None, level: int = -1, room: Room | None = None,
    costs: U8 | None = None, most: int = 0,
) -> tuple[I64, U32, U16, U64, int, int]: ...
def scan(
    rows: U64, queries: U64, h: int, first: bool, level: int = -1, room: Room | None = None
) -> tuple[I64, U32, U16, int]: ...

# top K ------------------------------------------------------------------------------------------
def top_scan(
    rows: U64, ids: U64, queries: U64, k: int, dead: U8 | None = None, threads: int = 1,
    level: int = -1,
) -> tuple[U64, U16, U32]: ...

# look-ups for comparison ------------------------------------------------------------------------
BucketColumns = tuple[U32, U32, U16, U16]  # (m, k) each: first, end, steps, end_steps

def look_up(
    rows: U64, queries: U64, flips: U64, header_bits: int, interpolated: bool
) -> BucketColumns: ...
def look_up_in_directory(
    directory: U32, directory_bits: int, rows: int, queries: U64, flips: U64, header_bits: int
) -> BucketColumns: ...

# pairs ------------------------------------------------------------------------------------------
PairColumns = tuple[U32, U32, U16]

@overload
def block_pairs(
    rows: U64, blocks: U32, block: int, h: int, threads: int = 1, level: int = -1
) -> PairColumns: ...
@overload
def block_pairs(  # None if there are more than `most` pairs
    rows: U64, blocks: U32, block: int, h: int, threads: int = 1, level: int = -1, *, most: int
) -> PairColumns | None: ...
def all_pairs(
    rows: U64,
    blocks: U32,
    agreeing: int,
    h: int,
    expanded: bool,
    most: int,
    threads: int = 1,
    level: int = -1,
) -> tuple[I64, I64, U16, I64, I64, float, bool]: ...

# slice lists ------------------------------------------------------------------------------------
def slice_lists(
    rows: U64,
    slice_bits: int,
    first_slice: int,
    slices: int,
    threads: int = 1,
    block_rows: int = ...,
) -> tuple[U32, U32]: ...

# The numbers that `lists` gives stand in the builder's own memory, until the next call.
class SliceBuilder:
    def __init__(
        self, rows: U64, slice_bits: int, slices: int, block_rows: int = ...
    ) -> None: ...
    def lists(self, first_slice: int, slices: int) -> tuple[U32, U32]: ...

def slice_starts(rows: U64, slice_bits: int, slice: int, block_rows: int = ...) -> U32: ...
def slice_part(
    rows: U64,
    slice_bits: int,
    slice: int,
    starts: U32,
    begin: int,
    size: int,
    block_rows: int = ...,
) -> U32: ...

class CheckedSlices:
    def __init__(
        self,
        rows: U64,
        ids: U64,
        starts: U32,
        numbers: U32,
        verified_rows: Verified | None = None,
        verified_ids: Verified | None = None,
        verified_numbers: Verified | None = None,
    ) -> None: ...

# Of the result: lists, scored, compared, damaged.
def top_slices(
    slices: CheckedSlices,
    queries: U64,
    k: int,
    max_error: int,
    rerank: int,
    dead: U8 | None = None,
    threads: int = 1,
    level: int = -1,
) -> tuple[U64, U16, U32, int, int, int, int]: ...

# query, row, distance, id; lists, compared, damaged.
def slices_within(
    slices: CheckedSlices, queries: U64, h: int, max_error: int, first: bool, level: int = -1,
    room: Room | None = None,
) -> tuple[I64, U32, U16, U64, int, int, int]: ...

# clusters ---------------------------------------------------------------------------------------
class Forest:
    def __init__(self, size: int) -> None: ...
    def unite(self, a: U64, b: U64) -> None: ...
    def labels(self) -> U32: ...

def star(
    first: U32, document: U32, documents: int, a: U32, b: U32, distance: U16, rank: U64
) -> tuple[U32, U16]: ...

# columns for other libraries ---------------------------------------------------------------------
# name, format of Arrow, numbers in a row (0 where they are no list), buffers
def arrow_stream(
    rows: int, columns: list[tuple[str, str, int, tuple[NDArray[Any], ...]]]
) -> object: ...

# inputs -----------------------------------------------------------------------------------------
def page_tags(page: U8, most: int) -> tuple[int, int, int]: ...

# starts of lines (n + 1), whether each is plain (n), texts and their ends, keys and their ends
def json_lines(
    block: U8, text_field: U8, key_field: U8, most_line: int, most_key: int
) -> tuple[I64, U8, U8, I64, U8, I64]: ...

# how many lines were written before the first that has the bytes `without`, in how many bytes
def spliced_lines(
    block: U8, starts: I64, inserts: U8, insert_ends: I64, without: U8
) -> tuple[int, int, U8]: ...
