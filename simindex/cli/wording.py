"""What the library says, in the words of the shell: options instead of arguments, commands
instead of calls."""

from __future__ import annotations

import re

from simindex.errors import InvalidOption, SimindexError

OPTIONS = {
    "h": "--distance", "recall": "--recall", "method": "--method", "memory": "--memory",
    "memory_limit": "--memory-limit", "k": "--top", "max_error": "--max-error",
    "rerank": "--rerank", "threads": "--threads", "sample": "--sample", "bits": "--bits",
    "structures": "--structures", "batch_rows": "--batch-rows", "rows": "--rows",
    "first": "--first", "limit": "--limit", "ngram": "--ngram", "similarity": "--similarity",
    "sketch_bits": "--sketch-bits", "measure": "--measure", "max_matches": "--max-matches",
    "max_share": "--max-share", "precision": "--precision",
}
"""Of the arguments that commands have options for."""

_VALUE = r"'[^']*'|\"[^\"]*\"|[(\[][^)\]]*[)\]]|-?[\w.]+"
_ARGUMENT = rf"(?:option )?(?<![\w`.\-])({'|'.join(OPTIONS)})=({_VALUE})"

_CALLS = (
    (" or Index.compact(structures=...)", ""),
    ("a tuple out of ", ""),
    ("a tuple of such numbers", "several, such as 1,2"),
    ("give keys=...", "name documents by --key or --keys-from"),
    ("give ids=...", "name documents by --id"),
    (" bits wide, not ", " bits wide and those of the index "),
    ("with a recall", "with --recall"),
    ("with IndexOptions(times=True) or `simindex build --times`", "with `simindex build --times`"),
    ("mode 'c' or ", ""),
    (", or open it with mode 'r'", ""),
    ("open the index with mode 'r', or ", ""),
    ('mode="components"', "--mode components"),
    ("a smaller cpus=", "a smaller --cpus"),
    ("close other connections", "end other commands on the cluster"),
    ("or Index.clusters a memory_limit", "or more memory with --memory-limit"),
    ("or a Batch that index.recipe made; or give h in place of similarity",
     "or fingerprints with sketches, as `simindex export` prints them; or give --distance in place "
     "of --similarity"),
)

_ENGINE = (
    (r"rows (?:that waited|waiting)(?: in the catalog)? for (?:a segment|one)\b",
     "rows of the last commits"),
    (r"(?<![\w/.-])segment(s?)(?![\w/.-])", r"file\1"),
)
"""Words of the engine in what is found in an index; names of files and folders stay."""


def with_remark(
    error: SimindexError, remark: str, *, remedy: str | None = None
) -> SimindexError:
    """The same error, which also says what is left of a run; with another remedy if one is given.
    """
    return type(error)(f"{error.what}; {remark}", remedy=remedy or error.remedy, **error.data)


def told(error: SimindexError) -> str:
    """What happened and what to do, in the words of the shell."""
    return worded(str(error), error)


def worded(sentence: str, error: SimindexError) -> str:
    """A sentence of an error in the words of the shell."""
    sentence = with_commands(sentence)
    # Others name files, and a file may be called h=5.
    return with_options(sentence) if isinstance(error, InvalidOption) else sentence


def with_commands(sentence: str) -> str:
    """A sentence about modes of `open`, without them."""
    for said, typed in _CALLS:
        sentence = sentence.replace(said, typed)
    return sentence


def with_files(sentence: str) -> str:
    """A sentence on what is in an index that speaks of its files, not of segments."""
    for said, plain in _ENGINE:
        sentence = re.sub(said, plain, sentence)
    return sentence


def with_options(sentence: str) -> str:
    """A sentence about arguments, such as h=65, as one about options."""
    return re.sub(_ARGUMENT, _typed, sentence)


def _typed(found: re.Match[str]) -> str:
    name, value = found[1], found[2].strip("'\"")
    if value.startswith(("(", "[")):
        value = re.sub("['\"() \\[\\]]", "", value) or '""'
    if name == "h" and found.start() > 0:
        return f"distance {value}"
    if value in ("True", "False"):
        return OPTIONS[name] if value == "True" else f"no {OPTIONS[name]}"
    return f"{OPTIONS[name]} {value}"
