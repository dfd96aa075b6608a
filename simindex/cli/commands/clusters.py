"""`simindex clusters`: groups of near-duplicates within an index."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

import simindex
from simindex.cli.app import program
from simindex.cli.commands.pairs import shown
from simindex.cli.console import LINES_AT_ONCE, count, duration, say
from simindex.cli.dedup.certificates import (
    certificate_format,
    certificates,
    estimating_bits,
    schema_of_certificates,
    write_certificates,
)
from simindex.cli.dedup.cluster_ranks import (
    REPRESENTATIVE,
    best_first,
    by_rank,
    kept_option,
    ranks_by,
    representatives,
    require_ranks,
)
from simindex.cli.dedup.ranks import WRITTEN, Keep
from simindex.cli.dedup.verification import (
    LookedFor,
    require_doubt,
    require_verifiable,
    said_of,
    verify_option,
)
from simindex.cli.input_options import Reading, input_options, inputs_argument
from simindex.cli.opening import open_index
from simindex.cli.progress import Progress
from simindex.cli.recommendation import GivenThreshold, threshold_options
from simindex.cli.results import Results, result_options
from simindex.cli.shared_options import (
    NamedPath,
    index_argument,
    memory_limit_option,
    output_options,
    threads_option,
)
from simindex.cli.similarity import (
    columns_of_similarity,
    schema_of_similarity,
    within,
)
from simindex.cli.stored_documents import as_stored
from simindex.cli.suggestions import suggested
from simindex.cli.targets import require_apart
from simindex.errors import InvalidOption
from simindex.inputs.reading import require_inputs
from simindex.outputs.columns import Schema, Write, key_text, kind_of_keys

if TYPE_CHECKING:
    from simindex.arrays import I64
    from simindex.records.clusters import Clusters


_MODE = click.option(
    "--mode", type=click.Choice(["star", "components"]), default="star", show_default=True,
    help="Which documents form a cluster. star: a representative and documents near it. components "
    "(single linkage): all documents that a chain of near-duplicates connects, even if its ends "
    "are far apart.",
)

_STAR = click.option("--star", "mode", flag_value="star", hidden=True)  # its name before --mode


def mode_options(command: Any) -> Any:
    """Which clusters are made; the command gets it as `mode`."""
    return _STAR(_MODE(command))


@program.command()
@index_argument
@inputs_argument
@threshold_options
@mode_options
@click.option(
    "--singletons/--no-singletons", default=True, show_default=True,
    help="Print or omit documents without a near-duplicate.",
)
@click.option(
    "--keep", metavar="POLICY", callback=kept_option,
    shell_complete=suggested(lambda: [REPRESENTATIVE, *WRITTEN[:-1]]),
    help="Which document of each cluster to keep: representative, or first, longest, newest or "
    "highest:FIELD, which need the INPUTs. Each line then has keep or drop, the document, its "
    "cluster, and the document that is kept. Default: print the clusters only.",
)
@click.option(
    "--list", "listed", type=click.Choice(["keep", "drop"]),
    help="With --keep, print only the names of the documents to keep, or to drop. `simindex delete "
    "INDEX --keys-from -` reads such a list.",
)
@click.option(
    "--date-field", metavar="NAME",
    help="With --keep newest, the field that has the date. Default: as for `simindex dedup`.",
)
@click.option(
    "--certificates", "certified", type=NamedPath(), metavar="FILE",
    help="With --keep, write a line to FILE for each document to drop: the kept one, the distance, "
    "and the similarity that it tells, with its standard error. FILE has JSON lines, or a table if "
    "its name ends with .csv or .parquet.",
)
@verify_option
@click.option(
    "--temp-dir", type=NamedPath(), metavar="DIR",
    help="With --verify-text, folder for the texts. Default: the temporary folder of the system.",
)
@memory_limit_option
@threads_option
@input_options
@result_options
@output_options
def clusters(
    index_path: str, inputs: tuple[str, ...], given: GivenThreshold, mode: str, singletons: bool,
    keep: Keep | None, listed: str | None, date_field: str | None, certified: str | None,
    verify_text: bool, temp_dir: str | None, memory_limit: int | None, threads: int | None,
    reading: Reading, results: Results, as_json: bool, quiet: bool,
) -> None:
    """Print the clusters of near-duplicates within INDEX.

    A cluster is a representative and its near-duplicates. Prints one line for each document,
    ordered by cluster: its key (or id), the name of its cluster, the representative, the size of
    the cluster, and the distance to the representative, separated by tabs. With --similarity, the
    estimated similarity follows. A cluster has the name of its document with the smallest id.

    INPUTs are those from which INDEX was built. Only --keep and --verify-text need them.
    """
    keep = _checked_keep(keep, listed, date_field, certified, () if verify_text else inputs)
    if verify_text:
        require_verifiable(given.similarity, mode, inputs, calibrated=given.calibrated)
    elif temp_dir is not None:
        raise click.UsageError("--temp-dir needs --verify-text")
    if certified is not None and mode != "star":
        raise click.UsageError(f"--certificates needs --mode star: of {mode}, documents may be "
                               "far from the one that is kept")
    require_inputs(inputs)
    results.require_apart(inputs, index_path)
    require_apart("--certificates", certified, inputs, index_path)
    row = certificate_format(certified)
    started = time.perf_counter()
    with open_index(index_path, "r") as index, ExitStack() as opened:
        near = given.asked_of(index, index_path)
        h, similarity = near.h, near.similarity
        if verify_text:
            require_doubt(index_path, similarity)
        if keep is not None:
            require_ranks(keep, inputs, bool(index.options.keys))
        keys = index.options.keys
        looked_for = None
        if verify_text:
            looked_for = _looked_for(
                index, index_path, reading, inputs, temp_dir, opened, quiet=quiet
            )
        schema = schema_of_verdicts(keys) if keep else schema_of_clusters(
            keys, similarity, verified=verify_text
        )
        bits = estimating_bits(index.recipe, index.options.bits)
        proof = schema_of_certificates(
            keys, bits > 0 or similarity is not None, verified=verify_text
        )
        with results.opened(schema) as write, certificates(certified, row, proof) as certify:
            choose = None
            if keep is not None:
                reading = reading.of_all_fields().named_for(index)
                if not (quiet or verify_text):
                    reading.say_names(inputs, index_path)
                intake = reading.intake()
                documents = as_stored(index, reading.documents(inputs, intake)) if inputs else None
                choose = partial(ranks_by, keep=keep, documents=documents, quiet=quiet)
            prefer = None
            if choose is not None and keep is not None and keep.policy != REPRESENTATIVE:
                prefer = partial(best_first, choose)
            with Progress("pairing", "row", quiet=quiet) as progress:
                found = index.clusters(
                    **near.arguments, mode=mode, singletons=singletons,
                    memory_limit=memory_limit, threads=threads, progress=progress.tell,
                    prefer=prefer if mode == "star" else None, texts=looked_for,
                )
            rows = len(index)
            if choose is None:
                print_clusters(found, write)
            else:
                kept = representatives(found) if mode == "star" else by_rank(found, choose(found))
                print_verdicts(found, kept, listed, write)
                if certify is not None:
                    write_certificates(found, certify, bits)
    if keep is not None and not quiet:
        if rows > found.documents:
            say(
                f"{rows:,} rows are {count(found.documents, 'document')}: all rows of a key are "
                "one document here, kept or dropped as a whole, and `simindex delete` removes "
                "them all"
            )
        say(told_of_verdicts(found, kept))
    if not quiet:
        if found.verification is not None:
            for line in said_of(found.verification, looked_for.changed if looked_for else 0):
                say(line)
        reach = within(h, similarity)
        say(f"{told_of(found, reach)}, in {duration(time.perf_counter() - started)}")


def _looked_for(
    index: simindex.Index, index_path: str, reading: Reading, inputs: tuple[str, ...],
    temp_dir: str | None, opened: ExitStack, *, quiet: bool,
) -> LookedFor:
    """What reads texts again; its file goes when `opened` ends."""
    from simindex.cli.dedup.matched_index import temporary_folder
    from simindex.cli.dedup.texts import KeptTexts

    if not index.options.keys:
        raise InvalidOption(
            "--verify-text finds documents in the inputs by their keys, and the index has none",
            remedy="leave out --verify-text", option="verify_text",
        )
    reading = reading.named_for(index)
    if not quiet:
        reading.say_names(inputs, index_path)
    texts = KeptTexts(opened.enter_context(temporary_folder(temp_dir)))
    opened.callback(texts.close)
    return LookedFor(index, reading, inputs, texts)


def told_of(found: Clusters, near: str) -> str:
    """How many clusters there are, and how large; `near` says what a near-duplicate is."""
    of = f" of at most {count(found.largest, 'document')}" if found.clusters else ""
    have = "has" if found.alone == 1 else "have"
    return (
        f"{count(found.clusters, 'cluster')}{of} {near}; {found.alone:,} of "
        f"{count(found.documents, 'document')} {have} no near-duplicate"
    )


def _checked_keep(
    keep: Keep | None, listed: str | None, date_field: str | None, certified: str | None,
    inputs: tuple[str, ...],
) -> Keep | None:
    if keep is None:
        for given, name in (
            (listed, "--list"), (date_field, "--date-field"), (certified, "--certificates"),
            (inputs, "an INPUT"),
        ):
            if given:
                raise click.UsageError(f"{name} needs --keep")
        return None
    if date_field is not None and keep.policy != "newest":
        raise click.UsageError("--date-field needs --keep newest")
    if inputs and keep.policy == REPRESENTATIVE:  # with --verify-text they are not given here
        raise click.UsageError("--keep representative needs no INPUT: leave it out")
    return keep if date_field is None else replace(keep, field=date_field)


def told_of_verdicts(found: Clusters, kept: I64) -> str:
    """How many documents are kept and dropped."""
    import numpy as np

    dropped = len(found) - len(np.unique(kept))
    return (f"keep {found.documents - dropped:,} of {count(found.documents, 'document')}, "
            f"drop {dropped:,}")


def schema_of_verdicts(keys: Any) -> Schema:
    """The columns of what is kept and dropped, with keys of a kind, or without."""
    kind = kind_of_keys(keys) if keys else "uint64"
    return {"keep": "bool", "key" if keys else "id": kind, "cluster": kind, "kept": kind}


def print_verdicts(
    found: Clusters, kept: I64, listed: str | None, write: Write | None
) -> None:
    """Prints what is kept and dropped as lines, or hands it to `write`."""
    for columns in _verdicts(found, kept, listed):
        if write is None:
            click.echo("\n".join(_lines_of_verdicts(columns, listed is not None)))
        else:
            write(columns)


def _verdicts(found: Clusters, kept: I64, listed: str | None) -> Iterator[dict[str, Any]]:
    """What is kept and dropped, some documents at a time; only one of both if that is `listed`."""
    import numpy as np

    chosen = found.standing_for(kept)
    keeps = kept == np.arange(len(kept))
    for number, some in enumerate(chosen.slices(LINES_AT_ONCE)):
        start = number * LINES_AT_ONCE
        keep = keeps[start : start + len(some)]
        columns: list[Any] = [some.keys(), some.cluster_keys(), some.representative_keys()]
        keyed = columns[0] is not None
        if not keyed:
            columns = [column.tolist() for column in (some.id, some.cluster, some.representative)]
        rows = np.arange(len(some))
        if listed is not None:
            rows = np.flatnonzero(keep == (listed == "keep"))
        if len(rows):
            own, cluster, winner = ([column[row] for row in rows.tolist()] for column in columns)
            name = "key" if keyed else "id"
            yield {"keep": keep[rows], name: own, "cluster": cluster, "kept": winner}


def _lines_of_verdicts(columns: dict[str, Any], listed: bool) -> Iterator[str]:
    keep, *names = columns.values()
    if listed:
        yield from map(_alone, names[0])
        return
    for kept, *row in zip(keep.tolist(), *names, strict=True):
        yield "\t".join(["keep" if kept else "drop", *map(shown, row)])


def _plain(name: Any) -> Any:
    return name if isinstance(name, int) else key_text(name)


def _alone(name: Any) -> str:
    """A name on a line of its own, as `delete --keys-from` reads it back."""
    text = str(_plain(name))
    if isinstance(name, bytes) and text.encode() != name:
        raise InvalidOption(
            f"a key of bytes, {name!r:.80}, cannot be listed", remedy="use --json", option="list",
        )
    if not text or text != text.strip("\r\n") or "\n" in text:
        raise InvalidOption(
            f"the key {text!r:.80} does not fit on a line", remedy="use --json", option="list"
        )
    return text


def schema_of_clusters(
    keys: Any, similarity: float | None = None, *, verified: bool = False
) -> Schema:
    """The columns of clusters of an index with keys of a kind, or without; with `verified` of exact
    similarities, too."""
    ids: Schema = {
        "id": "uint64", "cluster": "uint64", "representative": "uint64", "distance": "uint16",
        "size": "int64",
    }
    kind = kind_of_keys(keys)
    named: Schema = {"key": kind, "cluster_key": kind, "representative_key": kind} if keys else {}
    return {**ids, **named, **schema_of_similarity(similarity, verified=verified)}


def print_clusters(found: Clusters, write: Write | None) -> None:
    """Prints clusters as lines, or hands them to `write`."""
    for columns in map(_columns, found.slices(LINES_AT_ONCE)):
        if write is None:
            click.echo("\n".join(_lines(columns)))
        else:
            write(columns)


def _columns(some: Clusters) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "id": some.id, "cluster": some.cluster, "representative": some.representative,
        "distance": some.distance, "size": some.size,
    }
    if (keys := some.keys()) is not None:
        others = some.cluster_keys(), some.representative_keys()
        columns |= zip(("key", "cluster_key", "representative_key"), (keys, *others), strict=True)
    if some.similarity_bits:
        columns |= columns_of_similarity(
            some.distance, some.similarity_bits, some.measure, some.exact_similarity
        )
    return columns


def _lines(columns: dict[str, Any]) -> Iterator[str]:
    told = [columns[name].tolist() for name in ("size", "distance")]
    if "similarity" in columns:
        told.append(columns["similarity"].tolist())
    if "key" in columns:
        names = [columns[name] for name in ("key", "cluster_key", "representative_key")]
    else:
        names = [columns[name].tolist() for name in ("id", "cluster", "representative")]
    for own, cluster, representative, *values in zip(*names, *told, strict=True):
        yield "\t".join([*map(shown, (own, cluster, representative)), *map(str, values)])
