"""Block designs: their permutations, and how far they are exact, against brute force.

What a table's header holds is read off the permuted rows: row j of a matrix of single bits is the
fingerprint with column j set, so its place after `permute` is where column j went. The proofs'
numbers are then compared with all ways to place h errors.
"""

from __future__ import annotations

import itertools
import pickle
from functools import lru_cache
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from simindex.bits.design import MAX_TABLES, BlockDesign, designs_for
from simindex.bits.hamming import pack, unpack
from simindex.bits.permutation import SLICE_ROWS
from simindex.errors import InvalidBatch, InvalidOption

NAMES = (
    "bphs:G=4,g=1", "bphs:G=5,g=2", "bphs:G=6,g=3", "bphs:G=7,g=2", "bphs:G=9,g=1", "bphs:G=8,g=3",
    "bphs:G=2,g=1,r=1", "bphs:G=3,g=1,r=2", "bphs:G=4,g=2,r=1", "bphs:G=5,g=3,r=3",
    "bphs:nested=4x4", "bphs:nested=3x5", "bphs:nested=5x3", "bphs:nested=2x3,r=1",
    "bphs:nested=4x4,r=1", "bphs:nested=5x4",
)


@st.composite
def designs(draw, widths=(64, 128, 192, 320)):
    """A design of at most 400 tables."""
    bits = draw(st.sampled_from(widths))
    if draw(st.booleans()):
        count = draw(st.integers(2, 20))
        leading = draw(st.integers(1, count - 1).filter(lambda g: comb(count, g) <= 400))
        return BlockDesign.flat(count, leading, flips=draw(st.integers(0, 2)), bits=bits)
    outer, inner = draw(st.integers(2, 10)), draw(st.integers(2, 12))
    return BlockDesign.nested(outer, inner, flips=draw(st.integers(0, 2)), bits=bits)


def columns_of(design: BlockDesign, table: int) -> list[int]:
    """Which column stands in each place of a table's rows."""
    single = pack(np.eye(design.bits, dtype=np.uint8))
    went = unpack(design.permute(single, table)).argmax(axis=1)
    return np.argsort(went).tolist()


def header_columns(design: BlockDesign) -> list[list[int]]:
    return [
        columns_of(design, table)[:width] for table, width in enumerate(design.header_bits)
    ]


@lru_cache
def cells(design: BlockDesign) -> tuple[np.ndarray, list[int]]:
    """Columns that lie in the same headers are one cell: (T, cells) of membership, and widths."""
    member = np.zeros((design.tables, design.bits), dtype=np.int64)
    for table, columns in enumerate(header_columns(design)):
        member[table, columns] = 1
    kinds, widths = np.unique(member, axis=1, return_counts=True)
    return kinds, widths.tolist()


def placements(widths: list[int], errors: int):
    """All ways to place so many errors in cells, at most a cell's width in each."""
    if len(widths) == 1:
        if errors <= widths[0]:
            yield (errors,)
        return
    for here in range(min(errors, widths[0]) + 1):
        for others in placements(widths[1:], errors - here):
            yield (here, *others)


def finds_all(design: BlockDesign, h: int, flips: tuple[int, ...]) -> bool:
    """Whether each placement of h errors leaves a table with no more than its flips."""
    member, widths = cells(design)
    placed = placements(widths, h)
    while chunk := list(itertools.islice(placed, 50_000)):
        in_header = np.array(chunk) @ member.T
        if not (in_header <= np.array(flips)).any(axis=1).all():
            return False
    return True


# Permutations


@given(design=designs(), data=st.data())
@pytest.mark.slow
def test_a_permutation_is_undone_and_keeps_distances(design, data):
    words = design.bits // 64
    rows = data.draw(hnp.arrays(np.uint64, (data.draw(st.integers(0, 5)), words)))
    table = data.draw(st.integers(0, design.tables - 1))
    before = rows.copy()
    moved = design.permute(rows, table)
    assert moved.shape == rows.shape and moved.dtype == np.uint64
    assert (rows == before).all() and not np.shares_memory(moved, rows)
    assert (design.unpermute(moved, table) == rows).all()
    assert (design.permute(design.unpermute(rows, table), table) == rows).all()
    counts = np.bitwise_count(rows[:, None] ^ rows).sum(axis=-1)
    assert (np.bitwise_count(moved[:, None] ^ moved).sum(axis=-1) == counts).all()


@given(design=designs())
@pytest.mark.slow
def test_table_0_is_the_rows_themselves(design):
    assert columns_of(design, 0) == list(range(design.bits))
    assert design.moves(0)[:, 2].sum() == design.bits


@given(design=designs(), data=st.data())
@pytest.mark.slow
def test_a_header_is_the_chosen_blocks_in_order_and_the_rest_follows_in_order(design, data):
    table = data.draw(st.integers(0, design.tables - 1))
    columns = columns_of(design, table)
    edges = [0, *itertools.accumulate(design.blocks)]
    blocks = [list(range(a, b)) for a, b in itertools.pairwise(edges)]
    if design.inner:
        outer, place = divmod(table, design.inner)
        rest = [column for column in range(design.bits) if column not in blocks[outer]]
        parts = np.array_split(rest, design.inner)  # cuts as we do: the first ones are wider
        expected = blocks[outer] + parts[place].tolist()
    else:
        chosen = list(itertools.combinations(blocks, design.leading))[table]
        expected = [column for block in chosen for column in block]
    assert columns[: design.header_bits[table]] == expected
    assert design.header_bits[table] == len(expected)
    assert columns[len(expected) :] == sorted(set(range(design.bits)) - set(expected))


@given(design=designs(), data=st.data())
def test_moves_followed_by_hand_permute(design, data):
    """One number of b bits, and the words of a kernel, give the same."""
    words = design.bits // 64
    row = data.draw(hnp.arrays(np.uint64, (1, words)))
    table = data.draw(st.integers(0, design.tables - 1))
    inverse = data.draw(st.booleans())
    expected = (design.unpermute if inverse else design.permute)(row, table)[0].tolist()

    number = int.from_bytes(row.astype(">u8").tobytes(), "big")
    moved, ends = 0, design.bits
    for source, target, width in design.moves(table, inverse=inverse).tolist():
        assert target + width == ends, "targets follow each other"
        assert source // 64 == (source + width - 1) // 64
        assert target // 64 == (target + width - 1) // 64
        ends = target
        moved |= (number >> source & (1 << width) - 1) << target
    assert ends == 0
    assert moved.to_bytes(words * 8, "big") == b"".join(w.to_bytes(8, "big") for w in expected)

    found, seen = [0] * words, [0] * words
    for source, target, left, mask in design.rotations(table, inverse=inverse).tolist():
        word = int(row[0, source])
        found[target] |= (word << left | word >> 64 - left) & mask
        assert seen[target] & mask == 0
        seen[target] |= mask
    assert found == expected and seen == [2**64 - 1] * words


def test_moves_are_few_and_not_writable():
    design = BlockDesign.parse("bphs:nested=4x4")
    assert max(len(design.rotations(table)) for table in range(16)) <= 5
    with pytest.raises(ValueError, match="read-only"):
        design.moves(3)[0, 0] = 1


def test_many_rows_are_permuted_as_one_by_one(rng):
    design = BlockDesign.parse("bphs:G=5,g=2", bits=128)
    rows = rng.integers(0, 2**64, (2 * SLICE_ROWS + 3, 2), dtype=np.uint64)
    moved = design.permute(rows, 7)
    some = [0, SLICE_ROWS - 1, SLICE_ROWS, 2 * SLICE_ROWS, 2 * SLICE_ROWS + 2]
    for place in some:
        assert (design.permute(rows[place : place + 1], 7) == moved[place]).all()
    assert (design.unpermute(moved, 7) == rows).all()


def test_a_column_of_words_keeps_its_shape():
    design = BlockDesign.flat(4, 1)
    rows = np.array([0xAAAA_BBBB_CCCC_DDDD], dtype=np.uint64)
    assert design.permute(rows, 2).tolist() == [0xCCCC_AAAA_BBBB_DDDD]
    assert design.permute(rows[:, None], 2).tolist() == [[0xCCCC_AAAA_BBBB_DDDD]]
    assert design.unpermute(design.permute(rows, 3), 3).shape == (1,)
    assert design.permute(rows[:0], 1).shape == (0,)


def test_uneven_blocks_and_their_order_stay_as_files_hold_them():
    design = BlockDesign.flat(5, 2)
    assert design.blocks == (13, 13, 13, 13, 12)
    assert design.header_bits == (26, 26, 26, 25, 26, 26, 25, 26, 25, 25)
    text = f"{0x0123_4567_89AB_CDEF:064b}"
    moved = text[26:39] + text[39:52] + text[:26] + text[52:]  # table 7 is C D, A B E
    row = np.array([0x0123_4567_89AB_CDEF], np.uint64)
    assert design.permute(row, 7).tolist() == [int(moved, 2)]


def test_rows_of_another_width_or_table_are_refused():
    design = BlockDesign.flat(4, 1)
    rows = np.zeros((3, 2), np.uint64)
    with pytest.raises(InvalidBatch, match="128 bits wide, not 64"):
        design.permute(rows, 1)
    with pytest.raises(InvalidBatch):
        design.unpermute(rows[:, 0].astype(np.int64), 1)
    for table in (-1, 4, 1.0, True):
        with pytest.raises(InvalidOption, match="from 0 to 3 in bphs:G=4,g=1") as caught:
            design.permute(rows[:, 0], table)
        assert caught.value.data["option"] == "table"


# Exactness


@pytest.mark.parametrize("name", NAMES)
def test_exact_for_is_what_all_placements_of_errors_say(name):
    """Property 3, and that one error more can be missed."""
    design = BlockDesign.parse(name)
    h = design.exact_for
    flips = (design.flips,) * design.tables
    assert finds_all(design, h, flips)
    assert not finds_all(design, h + 1, flips)


@pytest.mark.parametrize(
    ("name", "h", "tables", "shortest"),
    [
        ("bphs:G=4,g=1", 3, 4, 16), ("bphs:G=5,g=2", 3, 10, 25), ("bphs:G=8,g=3", 5, 56, 24),
        ("bphs:G=2,g=1,r=1", 3, 2, 32), ("bphs:nested=4x4", 3, 16, 28),
    ],
)
def test_designs_of_the_literature(name, h, tables, shortest):
    design = BlockDesign.parse(name)
    assert (design.exact_for, design.tables, min(design.header_bits)) == (h, tables, shortest)
    assert design.bytes_per_row == 8 * tables


@pytest.mark.parametrize("h", range(1, 9))
def test_flat_designs_without_flips_exist_for_every_h(h):
    """[PSM] section 6: G >= h + 1 and 1 <= g <= G - h."""
    for count in range(h + 1, 13):
        for leading in range(1, count - h + 1):
            design = BlockDesign.flat(count, leading)
            design.require_exact(h)
            assert design.exact_for == count - leading
            assert max(design.blocks) - min(design.blocks) <= 1 and sum(design.blocks) == 64


def probes(design, h=None, directory_bits=64):
    """Header look-ups of one query in each table: those for h, or with r flips."""
    flips = [design.flips] * design.tables if h is None else design.table_flips(h)
    return tuple(
        sum(comb(min(width, directory_bits), size) for size in range(r + 1))
        for width, r in zip(design.header_bits, flips, strict=True)
    )


@pytest.mark.parametrize("name", NAMES)
def test_fewer_flips_and_tables_are_exact_for_a_smaller_h(name):
    design = BlockDesign.parse(name)
    spent = []
    for h in range(design.exact_for + 1):
        flips = design.table_flips(h)
        assert len(flips) == design.tables and min(flips) >= -1 and max(flips) <= design.flips
        assert finds_all(design, h, flips)
        spent.append(sum(probes(design, h, directory_bits=24)))
    assert spent == sorted(spent)
    assert spent[0] == 1 and spent[-1] <= sum(probes(design, directory_bits=24))
    if not design.inner:  # of a x c tables with a != c, some are never needed
        assert set(design.table_flips(design.exact_for)) == {design.flips}


@given(data=st.data(), count=st.integers(2, 5), h=st.integers(0, 7))
def test_cheapest_flips_are_exact_and_none_are_cheaper(data, count, h):
    """Against all ways to deal flips out; costs rise with the flips, as real ones do."""
    design = BlockDesign.flat(count, 1, flips=7)
    steps = st.lists(st.integers(1, 1000), min_size=1, max_size=4)
    costs = [np.cumsum(data.draw(steps)).tolist() for _ in range(count)]
    found = design.cheapest_flips(h, costs)
    cheapest = min(
        (
            (sum(cost[r] for cost, r in zip(costs, flips, strict=True) if r >= 0), flips)
            for flips in itertools.product(*(range(-1, len(cost)) for cost in costs))
            if sum(r + 1 for r in flips) >= h + 1
        ),
        default=(0, None),
    )
    if found is None:
        assert cheapest[1] is None
        return
    assert finds_all(design, h, found)
    assert sum(cost[r] for cost, r in zip(costs, found, strict=True) if r >= 0) == cheapest[0]


def test_flips_are_not_dealt_out_where_tables_share_blocks():
    for name in ("bphs:G=5,g=2", "bphs:nested=4x4"):
        design = BlockDesign.parse(name)
        assert design.cheapest_flips(3, [[1.0]] * design.tables) is None


@pytest.mark.parametrize("name", NAMES)
def test_near_pairs_agree_on_some_header(name, rng):
    """Random pairs of 64 bits within h, compared in the tables as a search would."""
    design = BlockDesign.parse(name)
    rows = rng.integers(0, 2**64, 3000, dtype=np.uint64)
    errors = rng.random((len(rows), 64)).argsort(axis=1) < rng.integers(
        0, design.exact_for + 1, (len(rows), 1)
    )
    near = rows ^ pack(errors)
    agreed = np.zeros(len(rows), dtype=bool)
    for table, width in enumerate(design.header_bits):
        differing = design.permute(rows, table) ^ design.permute(near, table)
        agreed |= np.bitwise_count(differing >> np.uint64(64 - width)) <= design.flips
    assert agreed.all()


def test_probes_count_every_header_within_the_flips():
    design = BlockDesign.flat(2, 1, flips=1)
    assert probes(design) == (33, 33)
    assert probes(design, directory_bits=20) == (21, 21)
    assert probes(design, h=2) == (33, 1)
    assert probes(design, h=0) == (1, 0)
    assert probes(BlockDesign.flat(5, 2)) == (1,) * 10
    assert sum(probes(BlockDesign.flat(5, 2), h=2)) == 6


# Names, bounds and choices


@given(design=designs())
def test_a_design_is_read_back_from_its_name(design):
    again = BlockDesign.parse(design.structure, bits=design.bits)
    assert again == design and hash(again) == hash(design)
    assert str(design) == design.structure
    assert pickle.loads(pickle.dumps(design)) == design  # noqa: S301


@pytest.mark.parametrize(
    "text",
    ["", "psm", "bphs", "bphs:", "bphs:G=5", "bphs:G=5,g=2 ", "bphs:G=5,g=2,r=", "BPHS:G=5,g=2",
     "bphs:G=5,g=-2", "bphs:G=+5,g=2", "bphs:G=5,g=2,nested=4x4", "bphs:nested=4", "bphs:g=2,G=5",
     "bphs:nested=4x4x4", "bphs:G=٥,g=2", "bphs:G=5,g=2\n", "bphs:G=99999,g=2", None, 5],
)
def test_what_names_no_design_is_refused_with_the_forms_that_do(text):
    with pytest.raises(InvalidOption, match="bphs:nested=4x4") as caught:
        BlockDesign.parse(text)
    assert caught.value.data["found"] == text


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("bphs:G=1,g=1", "G"), ("bphs:G=0,g=0", "G"), ("bphs:G=65,g=1", "G"), ("bphs:G=4,g=0", "g"),
        ("bphs:G=4,g=4", "g"), ("bphs:nested=1x4", "a"), ("bphs:nested=4x1", "c"),
        ("bphs:nested=4x0", "c"), ("bphs:nested=4x49", "c"), ("bphs:G=2,g=1,r=32", "r"),
        ("bphs:nested=4x4,r=12", "r"), ("bphs:G=64,g=1,r=1", "r"), ("bphs:G=20,g=10", "tables"),
    ],
)
def test_numbers_that_make_no_design_are_named(text, option):
    with pytest.raises(InvalidOption) as caught:
        BlockDesign.parse(text)
    assert caught.value.data["option"] == option and caught.value.data["structure"] == text
    assert str(caught.value).startswith(f"{text}: option {option}=")


@pytest.mark.parametrize("bits", [0, 32, 63, 100, 4160, 64.0, "64"])
def test_widths_are_multiples_of_64(bits):
    with pytest.raises(InvalidOption, match="bits="):
        BlockDesign.parse("bphs:G=4,g=1", bits=bits)
    with pytest.raises(InvalidOption, match="bits="):
        designs_for(3, bits)


def test_more_than_a_design_promises_is_refused_with_designs_that_do():
    design = BlockDesign.parse("bphs:G=4,g=1")
    design.require_exact(3)
    with pytest.raises(InvalidOption, match=r"exact up to h=3, not h=6: use bphs:G=3") as caught:
        design.require_exact(6)
    assert caught.value.data["option"] == "h" and len(caught.value.data["designs"]) == 4
    for name in caught.value.data["designs"]:
        BlockDesign.parse(name).require_exact(6)
    with pytest.raises(InvalidOption, match="scan"):
        design.require_exact(64)
    for h in (-1, 1.5, True, None):
        with pytest.raises(InvalidOption, match="h="):
            design.require_exact(h)


@pytest.mark.parametrize("h", range(13))
@pytest.mark.parametrize("bits", [64, 1024])
def test_candidates_are_exact_and_none_is_as_good_as_another(h, bits):
    found = designs_for(h, bits, most_tables=60)
    assert found
    assert [d.tables for d in found] == sorted(d.tables for d in found)
    for design in found:
        design.require_exact(h)
        assert design.bits == bits and design.tables <= 60 and design.flips <= 2
    for a, b in itertools.permutations(found, 2):
        assert not (
            a.tables <= b.tables and a.flips <= b.flips
            and min(a.header_bits) >= min(b.header_bits)
        )


def test_candidates_for_h_3_hold_the_designs_of_the_literature():
    names = [design.structure for design in designs_for(3)]
    assert {
        "bphs:G=2,g=1,r=1", "bphs:G=4,g=1", "bphs:G=5,g=2", "bphs:nested=4x4", "bphs:G=6,g=3"
    } <= set(names)
    assert [d.structure for d in designs_for(3, most_tables=16, most_flips=0)] == [
        "bphs:G=4,g=1", "bphs:G=5,g=2", "bphs:nested=4x4"
    ]
    assert designs_for(3, most_tables=1) == []
    assert designs_for(64) == []


def test_bounds_of_the_choice_are_checked():
    for bounds in ({"most_tables": -1}, {"most_tables": MAX_TABLES + 1}, {"most_flips": -1}):
        with pytest.raises(InvalidOption, match=next(iter(bounds))):
            designs_for(3, **bounds)
