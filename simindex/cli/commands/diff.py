"""`simindex diff`: why two documents match or not.

    A B                  two files, or two texts with --text
    A B --index INDEX    two keys or ids of an index; their texts are looked for in --input
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

import simindex
from simindex.cli.app import program
from simindex.cli.console import cell, say
from simindex.cli.input_options import Reading, input_options
from simindex.cli.opening import open_index
from simindex.cli.recipes import asked_recipe, recipe_options, stored_recipe
from simindex.cli.shared_options import NamedPath, distance, output_options
from simindex.cli.similarity import measure_option, require_one, similarity_option
from simindex.errors import InvalidOption
from simindex.inputs.reading import require_inputs
from simindex.outputs.columns import as_json_line, encodable
from simindex.reporting.escaping import shortened

if TYPE_CHECKING:
    from simindex.records.pair_explanation import FeaturePair, PairExplanation, WordChange

FEATURES, BITS, RUNS = 10, 10, 40
"""Lines of each kind that are printed without --verbose."""

RUN_CHARACTERS = 400
"""Of a run of words, so many are printed without --verbose."""

NO_TEXTS = "texts cannot be compared by it", "name an index with a recipe, or leave out --recipe"


@program.command()
@click.argument("names", metavar="A B", nargs=2, type=click.Path())
@click.option(
    "--text", "are_texts", is_flag=True,
    help="A and B are texts. Default: they are names of files.",
)
@click.option(
    "--index", "index_path", type=NamedPath(), metavar="INDEX",
    help="A and B are keys or ids of documents of INDEX.",
)
@click.option(
    "--input", "inputs", multiple=True, type=NamedPath(), metavar="INPUT",
    help="With --index: a file or folder in which to look for the texts of A and B. May be "
    "repeated. Default: the files that the keys of INDEX name.",
)
@click.option(
    "--recipe", "recipe_of", type=NamedPath(), metavar="INDEX",
    help="Compare files or texts by the recipe of an index, with the word weights (idf) that it "
    "learned.",
)
@distance("that of the recipe, or of INDEX")
@similarity_option
@measure_option
@click.option(
    "-v", "--verbose", is_flag=True,
    help="Print all features, bits and words, not only the first ones.",
)
@click.option(
    "--output", type=click.Choice(["jsonl"]),
    help="Format of the result. jsonl is what --json prints: one object with everything.",
)
@recipe_options
@input_options
@output_options
def diff(
    names: tuple[str, str], are_texts: bool, index_path: str | None, inputs: tuple[str, ...],
    recipe_of: str | None, h: int | None, similarity: float | None, measure: str, verbose: bool,
    output: str | None, recipe_given: dict[str, Any], reading: Reading, as_json: bool, quiet: bool,
) -> None:
    """Print why documents A and B match or not.

    Prints their distance, estimated similarity and exact cosine. Then prints the features that
    weigh most in the difference, the bits that differ and how near their sums are to 0, and the
    words that differ. A and B are files; with --text they are texts, and with --index documents of
    an index. With --index, features and words are printed only if the texts are found.
    """
    require_one(h, similarity)
    asked = {"h": h, "similarity": similarity, "measure": measure}
    if index_path is None:
        if inputs:
            raise click.UsageError("--input is for documents of --index INDEX")
        if recipe_of is not None and recipe_given:
            raise click.UsageError(
                "--recipe uses the recipe of an index: leave out the other options of a recipe"
            )
        found = _of_texts(names, are_texts, recipe_of, recipe_given, asked, reading)
    elif are_texts or recipe_of is not None or recipe_given:
        raise click.UsageError(
            "--index compares documents of the index by its own recipe: leave out --text and the "
            "options of a recipe"
        )
    else:
        found = _of_index(index_path, names, inputs, asked, reading, quiet=quiet)
    if as_json or output is not None:
        click.echo(as_json_line(found.to_dict()))
        return
    for line in lines_of(found, verbose=verbose):
        click.echo(encodable(line))
    if not quiet:
        for told in found.warnings:
            say(f"warning: {encodable(told)}")


def _of_texts(
    names: tuple[str, str], are_texts: bool, recipe_of: str | None, given: dict[str, Any],
    asked: dict[str, Any], reading: Reading,
) -> PairExplanation:
    if recipe_of is None:
        recipe = asked_recipe(given)
        if not recipe.fitted:
            raise InvalidOption(
                f"--weighting {recipe.weighting} learns idf from documents, and two are too few",
                remedy="give --recipe INDEX for the idf of an index", option="weighting",
                found=recipe.weighting,
            )
    else:
        recipe = stored_recipe(recipe_of, *NO_TEXTS)
    if are_texts:
        texts = [_as_text(name) for name in names]
        return simindex.explain_pair(texts[0], texts[1], recipe, names=("A", "B"), **asked)
    require_inputs(names, "give --text if it is a text, or --index INDEX if it is a key")
    read = [_one_document(name, reading) for name in names]
    return simindex.explain_pair(read[0].text, read[1].text, recipe, names=names, **asked)


def _as_text(argument: str) -> str:
    """An argument of the call; bytes that are no UTF-8 become signs of replacement."""
    return os.fsencode(argument).decode("utf-8", "replace")


def _one_document(name: str, reading: Reading) -> Any:
    documents = reading.documents([name], reading.intake())
    first, more = next(documents, None), next(documents, None)
    if first is None or more is not None:
        has = "no document" if first is None else "more than one document"
        raise InvalidOption(
            f"{name} has {has}, and one is compared",
            remedy="name a file of one text, or build an index and give --index and two keys",
            path=name,
        )
    return first


def _of_index(
    path: str, names: tuple[str, str], inputs: tuple[str, ...], asked: dict[str, Any],
    reading: Reading, *, quiet: bool,
) -> PairExplanation:
    require_inputs(inputs, "check the name")
    with open_index(path, "r") as index:
        keyed = bool(index.options.keys)
        named: list[Any] = list(names)
        if index.options.keys == "bytes":
            named = [os.fsencode(name) for name in names]
        elif not keyed:
            named = [_as_id(name) for name in names]
        ids, keys = (None, named) if keyed else (named, None)
        texts = _texts(index, named, inputs, reading) if index.recipe is not None else [None, None]
        if None in texts:
            if inputs and not quiet:
                lost = [name for name, text in zip(names, texts, strict=True) if text is None]
                say(f"the inputs have no text of {' and '.join(lost)} that is the one of the index")
            return index.explain_pair(ids=ids, keys=keys, **asked)
        return index.explain_pair(texts[0], texts[1], ids=ids, keys=keys, **asked)


def _as_id(name: str) -> int:
    try:
        return int(name)
    except ValueError:
        raise InvalidOption(
            f"{name} is not an id, and the index has no keys",
            remedy="give two ids, as `simindex query` prints them", found=name, expected="an id",
        ) from None


def _texts(
    index: simindex.Index, names: Sequence[Any], inputs: Sequence[str], reading: Reading
) -> list[str | None]:
    """The texts of two keys, where they still have the fingerprints that the index has."""
    from simindex.index.origin import origin_of

    if not isinstance(names[0], str):
        return [None, None]
    wanted: dict[Any, str | None] = dict.fromkeys(names)
    sources = list(inputs)
    origin = origin_of(index)
    if not inputs and origin is not None:
        files = (os.path.join(origin, name) for name in names)  # noqa: PTH118
        sources = [file for file in files if os.path.isfile(file)]  # noqa: PTH113
    if sources:
        reading = reading.named_for(index)
        for document in reading.documents(sources, reading.intake(silent=not inputs)):
            if document.key in wanted and wanted[document.key] is None:
                wanted[document.key] = _if_stored(index, document.key, document.text)
            if None not in wanted.values():
                break
    return [wanted[name] for name in names]


def _if_stored(index: simindex.Index, key: str, text: str) -> str | None:
    stored = index.get(key)
    assert index.recipe is not None
    made = index.recipe.batch([text], threads=1)
    if stored is None or not len(made):
        return None
    rows = stored.rows.reshape(len(stored), -1)
    return text if (rows == made.rows.reshape(1, -1)).all(axis=1).any() else None


def lines_of(found: PairExplanation, *, verbose: bool = False) -> Iterator[str]:
    """The explanation for people."""
    yield from _summary(found)
    if found.features:
        yield ""
        yield from _features(found.features, None if verbose else FEATURES)
    if found.flipped:
        yield ""
        yield from _bits(found, None if verbose else BITS)
    if found.words:
        yield ""
        yield from _words(found, None if verbose else RUNS)


def _summary(found: PairExplanation) -> Iterator[str]:
    yield f"match       {'yes' if found.match else 'no'}: {_why(found)}"
    if found.similarity is not None:
        source = "sketches" if found.sketch_distance is not None else "fingerprints"
        what = "a resemblance, " if found.measure == "jaccard" else ""
        yield (
            f"similarity  {found.similarity:.3f} ± {found.standard_error:.3f}, {what}estimated "
            f"from {found.compared_bits} bits of the {source}"
        )
    if found.cosine is not None:
        yield (
            f"cosine      {found.cosine:.4f}, exact; at it {found.expected_distance:.1f} ± "
            f"{found.expected_deviation:.1f} bits differ"
        )
    if found.jaccard is not None and found.features is not None:
        shared = sum(one.shared for one in found.features)
        yield (
            f"jaccard     {found.jaccard:.4f}: {shared:,} of {len(found.features):,} features are "
            "shared"
        )


def _why(found: PairExplanation) -> str:
    """Why two documents match or not, in words."""
    if found.distance is None:
        return "a text without a fingerprint matches nothing"
    within = found.distance <= found.h
    distance = f"distance {found.distance} of {found.bits} bits is {'' if within else 'not '}within"
    if found.asked is None:
        return f"{distance} {found.h}"
    candidates = f"{distance} {found.h}, the radius for candidates of similarity {found.asked:g}"
    if found.reached is None:
        return f"{candidates}, and there are no sketches"
    if not within:
        return candidates
    if not found.reached:
        return f"the estimated similarity is below {found.asked:g}"
    return f"the estimated similarity is {found.asked:g} or more, and {candidates}"


def _features(features: Sequence[FeaturePair], most: int | None) -> Iterator[str]:
    differing = [one for one in features if one.weight_a != one.weight_b]
    differing.sort(key=lambda one: (-abs(one.weight_a - one.weight_b), one.feature))
    equal = [one for one in features if one.weight_a == one.weight_b]
    for title, some in (("differing", differing), ("equal", equal)):
        if not some:
            continue
        yield f"{title + ' features':<20} weight in A   weight in B"
        for one in some[:most]:
            yield f"  {one.weight_a:29.4g} {one.weight_b:13.4g}  {cell(one.feature)}"
        if most is not None and len(some) > most:
            yield f"  and {len(some) - most:,} more"


def _bits(found: PairExplanation, most: int | None) -> Iterator[str]:
    assert found.flipped is not None
    with_sums = any(one.sum_a is not None for one in found.flipped)
    if not with_sums:
        yield f"flipped bits  {', '.join(str(one.bit) for one in found.flipped)}"
        return
    yield "flipped bits       sum in A      sum in B   (in standard deviations)"
    for one in found.flipped[:most]:
        sums = _sum(one.sum_a, one.deviations_a), _sum(one.sum_b, one.deviations_b)
        yield f"  {one.bit:4} {' '.join(sums)}"
    if most is not None and len(found.flipped) > most:
        yield f"  and {len(found.flipped) - most:,} more"


def _sum(value: float | None, deviations: float | None) -> str:
    if value is None:
        return f"{'-':>19}"
    near = "" if deviations is None else f"({deviations:.2f})"
    return f"{value:12.4g} {near:<6}"


def _words(found: PairExplanation, most: int | None) -> Iterator[str]:
    assert found.words is not None
    changed = [one for one in found.words if one.kind == "changed"]
    if not changed:
        if found.words_cut:
            yield "words       equal, as far as they were compared: not to the end of the texts"
        elif found.words:
            yield "words       equal, and in the same order"
        return
    yield "words that differ"
    shown = 0
    for place, one in enumerate(found.words):
        if one.kind == "equal":
            continue
        if most is not None and shown == most:
            yield f"  and {len(changed) - shown:,} more places"
            return
        shown += 1
        before = _end(found.words, place - 1)
        a, b = (run if most is None else shortened(run, RUN_CHARACTERS) for run in (one.a, one.b))
        yield f"  A  {before}" + (f"[-{cell(a)}-]" if a else "(nothing)")
        yield f"  B  {before}" + (f"{{+{cell(b)}+}}" if b else "(nothing)")
    if found.words_cut:
        yield "  the rest of the texts was not compared word by word"


CONTEXT_WORDS = 4


def _end(words: Sequence[WordChange], place: int) -> str:
    """The last words before a change."""
    if place < 0 or words[place].kind != "equal":
        return ""
    split = words[place].a[-200:].split()
    return f"… {cell(' '.join(split[-CONTEXT_WORDS:]))} " if split else ""
