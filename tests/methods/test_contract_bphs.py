"""Block-permuted tables keep the contract: flat, nested and flipped, for every width."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import oracle
import pytest
from contract import INDEXES, Case, MethodContract, named, opened_case

import simindex
from simindex import IndexOptions
from simindex.bits.design import BlockDesign
from simindex.errors import InvalidOption
from simindex.methods.bphs import looked_up
from simindex.planning import registry
from simindex.planning.machine import Machine

FLAT, LEADING, NESTED, FLIPPED = (
    "bphs:G=9,g=1", "bphs:G=10,g=2", "bphs:nested=4x4,r=3", "bphs:G=2,g=1,r=4",
)
EVERY = (FLAT, LEADING, NESTED, FLIPPED)


@pytest.fixture(scope="session", params=INDEXES)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Case]:
    """A filled index with the tables of every design, open for reading."""
    path = tmp_path_factory.mktemp("bphs") / "pages.sim"
    yield from opened_case(path, *request.param, ("psm", *EVERY))


class Bphs(MethodContract):
    """What a design promises beside the contract."""

    def test_the_tables_are_what_answers(self, case: Case) -> None:
        found = self.ask(case, case.batch(), h=3, recall=1.0)
        assert self.method in found.stats.method.split("+")  # beside it, what searches pending rows
        assert found.stats.probes > 0

    @pytest.mark.parametrize("first", [False, True])
    def test_probes_are_those_of_the_design(self, case: Case, first: bool) -> None:
        """No table is looked into that h does not need, nor a bucket twice."""
        if case.queries.shape[1] > 1:
            pytest.skip("pending rows are then scanned or not, which changes nothing here")
        design = BlockDesign.parse(self.method)
        for h in (0, 2, design.exact_for):
            found = self.ask(case, case.queries, h=h, first=first)
            most = 0
            for record in case.index.stats().segment_list:
                widths = [record["header_bits"]] * design.tables
                probes = sum(count for count, _ in looked_up(design, design.table_flips(h), widths))
                most += probes * len(case.queries)
            assert found.stats.probes <= most

    def test_radius_beyond_the_design_is_refused(self, case: Case) -> None:
        bits = 64 * case.queries.shape[1]
        beyond = BlockDesign.parse(self.method, bits).exact_for + 1
        with pytest.raises(InvalidOption, match="exact up to h=") as error:
            case.index.query(case.queries, h=beyond, method=self.method)
        would_do: Any = error.value.data["designs"]
        assert would_do
        assert all(BlockDesign.parse(name, bits).exact_for >= beyond for name in would_do)


class TestFlat(Bphs):
    method = FLAT
    structures = (FLAT,)


class TestLeading(Bphs):
    method = LEADING
    structures = ("psm", LEADING)


class TestNested(Bphs):
    method = NESTED
    structures = (NESTED,)


class TestFlipped(Bphs):
    method = FLIPPED
    structures = (FLIPPED, FLAT)


class TestAnyDesign(MethodContract):
    method = "bphs"
    structures = EVERY


class TestAutoAmongDesigns(MethodContract):
    """On a machine where each row compared is dear, so that wide headers are what pays.

    Among the methods whose costs follow from these constants: another one may have costs of its
    own.
    """

    method = "auto"
    among = ("psm", "bphs", "issl", "scan")
    structures = EVERY
    machine = replace(
        Machine(), levels=((1024, ((1.0, 1e4), (2.0, 2e4))),),
        scanned_ns=1e4, scanned_alone_ns=1e4, table_ns=1.0
    )

    def ask(self, case: Case, batch: Any, **options: Any) -> simindex.Matches:
        plans = case.index._answerer.plans
        usual, plans.machine = plans.machine, self.machine
        try:
            return super().ask(case, batch, **options)
        finally:
            plans.machine = usual

    @pytest.mark.parametrize("h", [1, 3])
    def test_a_design_is_chosen(
        self, case: Case, h: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in registry.METHODS.keys() - set(self.among):
            monkeypatch.delitem(registry.METHODS, name)
        with simindex.open(case.index.path) as index:  # which remembers no methods
            found = self.ask(replace(case, index=index), case.batch(), h=h)
        assert set(found.stats.method.split("+")) & set(EVERY)


def test_auto_uses_no_design_beyond_its_radius(case: Case) -> None:
    found = case.index.query(case.queries, h=10, method="auto")
    assert not set(found.stats.method.split("+")) & set(EVERY)
    assert named(found) == case.truth(10)
    with pytest.raises(InvalidOption, match="use bphs:"):
        case.index.query(case.queries, h=10, method="bphs")


def test_an_index_without_tables_says_how_to_add_them(index_path: Any) -> None:
    options = IndexOptions(structures=("psm",))
    with simindex.open(index_path, "n", options=options) as index:
        index.append(oracle.uniform(np.random.default_rng(0), 10)[:, 0])
        index.commit()
        for method in ("bphs", FLAT):
            with pytest.raises(InvalidOption, match="compact --structures"):
                index.query(np.array([1], np.uint64), method=method)
