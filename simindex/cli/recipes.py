"""How texts become fingerprints, as the command line is told: options, and the recipe they make.

    --bits --weighting ...   -> recipe; its idf, if it has any, comes later: `prepared_documents`
    --append, --recipe INDEX -> recipe of an index, with its idf
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import simindex
from simindex.cli.numbers import Count
from simindex.cli.opening import open_index
from simindex.cli.shared_options import Option, collected
from simindex.cli.wording import OPTIONS
from simindex.errors import InvalidOption
from simindex.simhash.projection import PROJECTIONS
from simindex.simhash.weighting import WEIGHTINGS

LEAST_DOCUMENTS = 30
"""Fewer teach too little: function words would weigh nearly as much as others. Then the shell uses
`Recipe()`, unless learning was asked for. docs/how-to/choosing-a-recipe.md has the figures."""


def _ngram(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    if value is None:
        return None
    try:
        sizes = tuple(int(size) for size in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of numbers such as 3 or 1,2,3") from None
    return sizes[0] if len(sizes) == 1 else sizes


def _stop_words(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    if value is None:
        return None
    if value.startswith("@"):
        return _listed_words(value.removeprefix("@"))
    from simindex.simhash.words import language_stop_words

    try:
        return language_stop_words(value)
    except InvalidOption as error:
        raise InvalidOption(
            f"--stop-words {value} is not a language with stop words",
            remedy=f"give @FILE with one word a line, or one of {error.data['expected']}",
            option="stop_words", found=value, expected=error.data["expected"],
        ) from error


def _listed_words(path: str) -> frozenset[str]:
    from simindex.simhash.recipe_bytes import MOST_HEADER_BYTES

    try:
        with Path(path).open("rb") as file:
            listed = file.read(MOST_HEADER_BYTES + 1)
    except OSError as error:
        raise InvalidOption(
            f"--stop-words @{path} cannot be read: {error.strerror or error}",
            option="stop_words", path=path,
        ) from error
    if len(listed) > MOST_HEADER_BYTES:
        raise InvalidOption(
            f"--stop-words @{path} is longer than {MOST_HEADER_BYTES >> 20} MiB, more than a "
            "recipe can hold",
            remedy="leave rare words out", option="stop_words", path=path,
        )
    try:
        words = listed.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InvalidOption(
            f"--stop-words @{path} is not UTF-8 at byte {error.start}",
            remedy="store it as UTF-8", option="stop_words", path=path, offset=error.start,
        ) from error
    return frozenset(line.strip() for line in words) - {""}


DEFAULT_NGRAM, DEFAULT_WEIGHTING = 1, "balanced-tfidf"
"""Of the shell, which can learn idf from the documents it is given."""

OTHER_WEIGHTING = "tfidf"
"""Of other features than single words: a balanced idf needs words that most documents have."""

_OF_TEXTS = [name for name in WEIGHTINGS if name != "given"]  # no weight of a text's features


def _given(**asked: Any) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if value is not None}


recipe_options: Option = collected(
    "recipe_given", _given,
    click.option(
        "--bits", type=Count(example="128"),
        help="Width of a fingerprint: a multiple of 64, up to 4096. Default: 64.",
    ),
    click.option(
        "--sketch-bits", type=Count(example="512"),
        help="Width of a sketch, which is stored with each fingerprint and makes --similarity more "
        "precise: a multiple of 64, such as 512 or 1024. Default: no "
        "sketch; 512 for a new index of `dedup --similarity`.",
    ),
    click.option(
        "--unit", type=click.Choice(["word", "char"]),
        help="Split texts into words or into characters. Default: word.",
    ),
    click.option(
        "--ngram", callback=_ngram, metavar="N[,N...]",
        help="How many neighbouring words or characters make a feature: up to 5 words or 16 "
        "characters. 1,2 takes single words and pairs. Default: 1; without idf 1,2; for characters "
        "5.",
    ),
    click.option(
        "--weighting", type=click.Choice(_OF_TEXTS),
        help="How much each feature counts. Weightings with idf first learn from your documents "
        "how rare each feature is. Default: balanced-tfidf for single words, else tfidf; sublinear "
        f"for `fingerprint`, `diff` and fewer than {LEAST_DOCUMENTS} documents.",
    ),
    click.option(
        "--projection", type=click.Choice(PROJECTIONS),
        help="How the random vector of a feature is drawn. Default: sign.",
    ),
    click.option(
        "--seed", type=Count(most=(1 << 32) - 1, example="42 or 1k"),
        help="Number from which the random vectors are made. Fingerprints of different seeds "
        "cannot be compared. Default: 0.",
    ),
    click.option(
        "--stop-words", callback=_stop_words, metavar="LANGUAGE|@FILE",
        help="Words to remove: the common words of a language such as en, or those of a file with "
        "one word on each line. Default: none.",
    ),
    click.option(
        "--stemmer", metavar="NAME",
        help="Reduce words to stems by this Snowball algorithm, such as english. Default: no "
        "stems.",
    ),
    click.option(
        "--min-features", type=Count(),
        help="Give no fingerprint to texts with fewer different features. Default: 1.",
    ),
)
"""How texts become fingerprints; the command gets what was asked for as `recipe_given`."""


def default_recipe(given: dict[str, Any]) -> Any:
    """The recipe asked for where documents can be learned from: else single words, balanced tf-idf.

    A weighting without idf has the n-grams of `Recipe` for its default, as characters have.
    """
    single = given.get("unit") != "char" and given.get("ngram", DEFAULT_NGRAM) in (1, (1,))
    chosen = {"weighting": DEFAULT_WEIGHTING if single else OTHER_WEIGHTING, **given}
    if WEIGHTINGS[chosen["weighting"]].idf and given.get("unit") != "char":
        chosen = {"ngram": DEFAULT_NGRAM, **chosen}
    return asked_recipe(chosen)


def asked_recipe(given: dict[str, Any]) -> Any:
    """The recipe asked for, without idf, else `Recipe`'s own defaults.

    InvalidOption names the option as it is typed.
    """
    try:
        return simindex.Recipe(**given)
    except InvalidOption as error:
        name, found = error.data.get("option"), error.data.get("found")
        if name not in given:
            raise
        typed = ",".join(map(str, found)) if isinstance(found, tuple) else found
        said = error.what.removeprefix(f"option {name}={found!r}")
        if said == error.what:
            said = f": {said}"
        option = f"{OPTIONS.get(name) or '--' + name.replace('_', '-')} {typed}"
        raise InvalidOption(f"{option}{said}", remedy=error.remedy, **error.data) from error


def stored_recipe(path: str | Path, so: str, remedy: str) -> Any:
    """The recipe of an index; InvalidOption, with what follows `so`, if it stores none."""
    with open_index(path, "r") as index:
        return _stored(index.recipe, path, so, remedy)


def _stored(recipe: Any, path: str | Path, so: str, remedy: str) -> Any:
    if recipe is None:
        raise InvalidOption(f"{path} stores no recipe, so {so}", remedy=remedy, path=str(path))
    return recipe


def recipe_of_questions(index: simindex.Index, path: str | Path, so: str, remedy: str) -> Any:
    """The same of an index that is open. One without rows has the default recipe."""
    from simindex.index.first_texts import recipe_of_texts

    return _stored(recipe_of_texts(index), path, so, remedy)


def recipe_of_documents(
    index: simindex.Index, path: str | Path, so: str, remedy: str
) -> Any:
    """The same of an index that documents are added to, whose rows must have text keys."""
    recipe = _stored(index.recipe, path, so, remedy)
    require_text_keys(index, path)
    return recipe


def first_given(
    index: simindex.Index, path: str | Path, given: dict[str, Any]
) -> dict[str, Any]:
    """Options of the recipe that the first documents bring to an index: of its widths."""
    require_text_keys(index, path)
    own = index.options
    widths = {"bits": own.bits}
    if own.sketch_bits:
        widths["sketch_bits"] = own.sketch_bits
    for name, bits in widths.items():
        asked = given.get(name, bits)
        if asked != bits:
            option = "--" + name.replace("_", "-")
            of = "fingerprints" if name == "bits" else "sketches"
            raise InvalidOption(
                f"{option} {asked} does not fit {path}, whose {of} have {bits} bits",
                remedy=f"leave {option} out, or build another index", option=name, found=asked,
                expected=bits,
            )
    return {**given, **widths}


def require_text_keys(index: simindex.Index, path: str | Path) -> None:
    """Raises InvalidOption for an index whose rows cannot be named as documents are."""
    from simindex.cli.stored_documents import kind_of_names

    keys = kind_of_names(index)
    if keys is False or keys == "bytes":
        raise InvalidOption(
            f"{path} names its rows by {'keys of bytes' if keys else 'ids'}, and documents need "
            "text keys",
            remedy="name an index with text keys, such as `simindex build` makes",
            path=str(path), found=index.options.keys, expected="str",
        )
