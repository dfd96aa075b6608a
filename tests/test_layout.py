"""`tests/` mirrors the package: the tests of a module are found by its name.

    tests/FOLDER/test_MODULE.py           the tests of simindex/FOLDER/MODULE.py
    tests/FOLDER/test_MODULE_ASPECT.py    more of them
    SUITES                                test files that belong to no single module
    TESTED_BY                             modules without a file of their name

1. A test file in a folder of the package names a module of that folder, or is of a suite. 2. Every
module has a test file of its name, or a row in TESTED_BY. 3. A row names a module that needs it,
and a test file that is there. 4. Test modules do not import each other: what they share is in a
plain module of `tests/`. 5. Modules of two folders have one name only if it is listed here.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "simindex"

SUITES = (
    "test_annotations.py", "test_bad_input.py", "test_build.py", "test_documentation.py",
    "test_imports.py", "test_layers.py", "test_layout.py", "test_logging.py", "test_oracle.py",
    "test_packaging.py", "test_public_names.py", "test_smoke.py",
    "cli/test_commands.py", "cli/test_mistakes.py", "index/test_concurrent_calls.py",
    "methods/test_contract_", "distributed/ray/test_commands.py",
)
"""Beginnings of paths below `tests/`, in folders of the package."""

TESTED_BY = {
    "arrays.py": "kernels/test_top_scan.py",
    "bits/exactness.py": "bits/test_design.py",
    "bits/permutation.py": "bits/test_design.py",
    "bits/splitmix.py": "storage/tables/test_permuted.py",
    "cli/targets.py": "cli/commands/test_dedup.py",
    "compat/named_rows.py": "compat/test_simhash.py",
    "cli/build_run.py": "cli/commands/test_build_and_query.py",
    "cli/shared_options.py": "cli/commands/test_build_and_query.py",
    "cli/query_options.py": "cli/commands/test_build_and_query.py",
    "cli/opening.py": "cli/commands/test_build_and_query.py",
    "cli/input_options.py": "cli/commands/test_build_and_query.py",
    "cli/commands/clusters.py": "cli/commands/test_pairs.py",
    "cli/description.py": "cli/commands/test_stats.py",
    "cli/answers.py": "cli/commands/test_build_and_query.py",
    "cli/fleet.py": "cli/commands/test_plan.py",
    "cli/commands/ray/build.py": "distributed/ray/test_commands.py",
    "cli/commands/ray/growth.py": "distributed/ray/test_commands.py",
    "cli/commands/ray/group.py": "distributed/ray/test_commands.py",
    "cli/commands/ray/query.py": "distributed/ray/test_commands.py",
    "cli/commands/ray/near_duplicates.py": "distributed/ray/test_commands.py",
    "cli/losers.py": "distributed/ray/test_commands.py",
    "records/verification.py": "pairs/test_doubtful_pairs.py",
    "cli/dedup/output_streams.py": "cli/commands/test_dedup.py",
    "cli/dedup/marks.py": "cli/commands/test_dedup.py",
    "cli/dedup/matched_index.py": "cli/commands/test_dedup_index.py",
    "cli/dedup/run.py": "cli/commands/test_dedup.py",
    "cli/dedup/winners.py": "cli/commands/test_dedup.py",
    "inputs/decompressors.py": "inputs/test_streams.py",
    "inputs/parquet_files.py": "inputs/test_column_files.py",
    "inputs/magics.py": "inputs/test_formats.py",
    "cli/suggestions.py": "cli/commands/test_completion.py",
    "distributed/question.py": "distributed/test_collection.py",
    "distributed/shard_contents.py": "distributed/test_growth.py",
    "distributed/creation.py": "distributed/test_collection.py",
    "distributed/deduplication.py": "distributed/test_collection.py",
    "distributed/ray/build_tasks.py": "distributed/ray/test_blocks.py",
    "distributed/ray/calls.py": "distributed/ray/test_connection.py",
    "distributed/ray/cluster.py": "distributed/ray/test_connection.py",
    "distributed/ray/holders.py": "distributed/ray/test_connection.py",
    "distributed/shard_check.py": "distributed/test_collection.py",
    "reporting/gate_findings.py": "reporting/test_gate_json_lines.py",
    "inputs/http_body.py": "inputs/test_archives.py",
    "inputs/extras.py": "inputs/test_archives.py",
    "inputs/gzip_members.py": "inputs/test_warc.py",
    "inputs/plain_text.py": "inputs/test_reading.py",
    "inputs/read_options.py": "inputs/test_reading.py",
    "inputs/archive_records.py": "inputs/test_warc.py",
    "inputs/fed_window.py": "inputs/test_warc.py",
    "index/agreement.py": "index/test_handle.py",
    "integrations/crawl_settings.py":
        "regressions/test_0092_errors_of_a_crawl_did_not_name_their_setting.py",
    "index/writing_call.py": "regressions/test_0038_calls_within_calls.py",
    "inputs/fingerprints.py": "inputs/test_exports.py",
    "methods/base.py": "methods/test_query_tables.py",
    "methods/bphs.py": "methods/test_contract_bphs.py",
    "methods/psm_slice.py": "methods/test_contract_batch.py",
    "outputs/columns.py": "outputs/test_json_lines.py",
    "pairs/tiles.py": "pairs/test_pair_search.py",
    "planning/table_plans.py": "planning/test_planner.py",
    "planning/conditions.py": "planning/test_planner.py",
    "planning/permuted_plans.py": "planning/test_planner.py",
    "planning/registry.py": "methods/test_contract_toy.py",
    "query/answerer.py": "query/test_audit.py",
    "query/call.py": "query/test_parts.py",
    "query/nearest.py": "methods/test_contract_top.py",
    "records/pair_explanation.py": "simhash/test_comparison.py",
    "records/advice.py": "advising/test_advice_bytes.py",
    "advising/goals.py": "advising/test_recommendation.py",
    "advising/copies.py": "advising/test_recommendation.py",
    "advising/judged_pairs.py": "advising/test_recommendation.py",
    "cli/recommendation.py": "cli/commands/test_calibrate.py",
    "records/clusters.py": "pairs/test_clusters.py",
    "records/pairs.py": "pairs/test_all_pairs.py",
    "records/reports.py": "repair/test_rebuild.py",
    "records/stars.py": "pairs/test_stars.py",
    "repair/check.py": "faults/test_damage.py",
    "repair/inventory.py": "repair/test_survey.py",
    "simhash/projection.py": "simhash/test_recipe_fingerprints.py",
    "storage/files/descriptor.py": "regressions/test_0051_interrupts_leaked_descriptors.py",
    "storage/files/envelope_writer.py": "storage/files/test_envelope.py",
    "storage/files/locks.py": "writing/test_ownership.py",
    "storage/files/file_names.py": "repair/test_steps.py",
    "storage/files/refusals.py": "test_errors.py",
    "storage/files/removal.py": "writing/test_merges.py",
    "storage/segment_files.py": "writing/test_writer_faults.py",
    "storage/tables/record.py": "storage/catalog/test_catalog.py",
    "storage/tables/structure.py": "storage/tables/test_slice_lists.py",
    "resources/threads.py": "faults/test_errors.py",
    "writing/admission.py": "test_bad_input.py",
    "writing/committer.py": "writing/test_writer_faults.py",
    "writing/creation.py": "writing/test_writer_faults.py",
    "writing/catalog_edit.py": "writing/test_writer_faults.py",
    "writing/releasing.py": "regressions/test_0051_interrupts_leaked_descriptors.py",
    "writing/replacement.py": "cli/test_new_index.py",
    "writing/restructuring.py": "storage/tables/test_permuted.py",
    "writing/merge_progress.py": "index/test_settling.py",
    "writing/tombstone_runs.py": "writing/test_merges.py",
}
"""Module without a test file of its name -> the test file that fails if the module is wrong."""

SAME_NOUN = frozenset({
    "agreement", "build", "calls", "check", "clusters", "creation", "csv_table", "files", "fleet",
    "formats", "gate", "growth", "index_report", "json_lines", "opening", "pair_explanation",
    "pairs", "query", "question", "recommendation", "similarity", "sketch_filter", "sketches",
    "stars", "verification",
})
"""Names that modules of several folders have: one noun, of which each has its part. A module of a
lower layer has the value or the work, and one of a higher layer what users type or read. Readers
and writers of one format have its name."""


def below(root: Path, pattern: str) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob(pattern))


MODULES = [path for path in below(PACKAGE, "*.py") if not path.endswith("__.py")]
FILES = below(TESTS, "test_*.py")


def files_of(module: str, files: Iterable[str]) -> list[str]:
    """Those of some test files that bear the name of a module."""
    folder, _, name = module.removesuffix(".py").rpartition("/")
    own = f"{folder}/test_{name}".lstrip("/")
    return [file for file in files if file == f"{own}.py" or file.startswith(f"{own}_")]


def misplaced(files: Iterable[str], modules: Sequence[str]) -> list[str]:
    """What is wrong with test files in a folder of the package: they name no module of it.

    The files of suites may.
    """
    folders = {"", *(module.rpartition("/")[0] for module in modules)}
    files = [
        file for file in files
        if file.rpartition("/")[0] in folders and not file.startswith(SUITES)
    ]
    named = {file for module in modules for file in files_of(module, files)}
    return [f"{file}: names no module of its folder" for file in files if file not in named]


def untested(
    modules: Iterable[str], files: Sequence[str], tested_by: Mapping[str, str]
) -> Iterator[str]:
    for module in modules:
        own = files_of(module, files)
        if own and module in tested_by:
            yield f"{module}: {own[0]} tests it; remove its row from TESTED_BY"
        elif not own and tested_by.get(module) not in files:
            yield f"{module}: add a test file of its name, or a row to TESTED_BY"
    for module in tested_by.keys() - set(modules):
        yield f"{module}: is not a module; remove its row from TESTED_BY"


def shared_names(modules: Iterable[str]) -> set[str]:
    """The names that modules of more than one folder have."""
    counts = Counter(module.rpartition("/")[2].removesuffix(".py") for module in modules)
    return {name for name, count in counts.items() if count > 1}


def imported(path: str) -> Iterator[str]:
    for node in ast.walk(ast.parse((TESTS / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def is_test_module(name: str) -> bool:
    return name.rpartition(".")[2].startswith("test_")


def test_a_test_file_names_a_module_of_its_folder() -> None:
    assert misplaced(FILES, MODULES) == []


def test_a_module_has_a_test_file() -> None:
    assert list(untested(MODULES, FILES, TESTED_BY)) == []


def test_a_suite_has_files() -> None:
    assert [suite for suite in SUITES if not any(file.startswith(suite) for file in FILES)] == []


def test_test_modules_import_no_other() -> None:
    found = [(path, name) for path in FILES for name in imported(path) if is_test_module(name)]
    assert found == []


def test_modules_of_two_folders_share_only_names_of_one_noun() -> None:
    assert shared_names(MODULES) == SAME_NOUN


def test_planted_faults_of_the_layout_are_found() -> None:
    assert shared_names(["cli/reading.py", "inputs/reading.py", "cli/app.py"]) == {"reading"}
    assert misplaced(["bits/test_vosh.py", "bits/test_vo.py"], MODULES) == [
        "bits/test_vo.py: names no module of its folder"
    ]
    assert misplaced(["test_bits.py", "faults/test_bits.py"], MODULES) == [
        "test_bits.py: names no module of its folder"
    ]
    assert files_of("bits/vosh.py", ["bits/test_vosh_order.py", "bits/test_voshx.py"]) == [
        "bits/test_vosh_order.py"
    ]
    for modules, files, tested_by in [
        (["bits/vosh.py"], ["test_vosh.py"], {}),
        (["bits/vosh.py"], ["bits/test_vosh.py"], {"bits/vosh.py": "bits/test_vosh.py"}),
        (["bits/vosh.py"], ["bits/test_vosh.py"], {"bits/gone.py": "bits/test_vosh.py"}),
        (["bits/vosh.py"], [], {"bits/vosh.py": "bits/test_gone.py"}),
    ]:
        assert len(list(untested(modules, files, tested_by))) == 1
