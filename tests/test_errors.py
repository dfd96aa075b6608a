"""Errors say what happened and what to do, apart and together."""

from __future__ import annotations

import ast
import errno
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from simindex import errors
from simindex.errors import (
    CorruptFile,
    FormatTooNew,
    InvalidOption,
    SimindexError,
    StorageFull,
    what_happened,
)
from simindex.storage.files.format import check_version
from simindex.storage.files.refusals import refusal, remedied

PLACE = Path("pages.sim")


@pytest.mark.parametrize("remedy", [None, "run `simindex check`"])
def test_error_survives_a_pickle_with_its_remedy(remedy: str | None) -> None:
    """As those that a worker process passes on."""
    error = CorruptFile("a file is damaged", remedy=remedy, path="a file", offset=3)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
    assert type(again) is CorruptFile
    assert (again.what, again.remedy, again.data) == (error.what, error.remedy, error.data)
    assert str(again) == str(error) == "a file is damaged" + (f": {remedy}" if remedy else "")


def test_damage_without_a_remedy_names_the_repair() -> None:
    with pytest.raises(CorruptFile) as caught, remedied(PLACE):
        raise CorruptFile("a file is damaged", path="a file")
    assert caught.value.remedy == "`simindex repair pages.sim` shows what can be recovered"
    assert caught.value.what == "a file is damaged"


def test_damage_keeps_the_remedy_it_has() -> None:
    with pytest.raises(FormatTooNew) as caught, remedied(PLACE):
        check_version(PLACE, 99, 0, 0)
    assert caught.value.remedy == "install a newer simindex"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_told_in_one_sentence(code: int) -> None:
    found = refusal(OSError(code, "no room", "a file"), PLACE)
    assert isinstance(found, StorageFull)
    assert found.what == "no space left while writing a file"
    assert found.remedy == "free some space and repeat the call; the index has its last commit"


def test_an_error_of_ours_is_not_translated_again() -> None:
    error = StorageFull("full")
    assert refusal(error, PLACE) is error
    assert isinstance(error, SimindexError)


def test_an_error_that_is_made_of_another_takes_what_happened() -> None:
    assert what_happened(InvalidOption("h is wrong", remedy="give another")) == "h is wrong"
    assert what_happened(ValueError("h is wrong")) == "h is wrong"


# -- the source: a remedy stands in the field, not in the sentence ---------------------------------

PACKAGE = Path(errors.__file__).parent
KINDS = frozenset(
    name for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, SimindexError)
)

IMPERATIVES = frozenset(re.findall(r"\w+", """
    add append ask bring build call cast change check choose close commit compact convert copy count
    create decode delete drop fill fit fix free give have install keep learn leave let make mend
    merge move name omit open pass pick pip put raise read rebuild reduce remove rename reopen
    repair repeat replace report restore retry run see select set show skip split start store
    supply switch take try turn update upgrade use wait write
"""))
"""Verbs that a remedy opens with, as it would at the beginning of a clause."""

_CLAUSE = re.compile(
    r"(?:^|[:;.,] |\()(?:or |and |please |then |so )?`?([A-Za-z]+)\b(?! (?:_ )?(?:of|is)\b)"
)
_COMMAND = re.compile(r"`simindex |pip install")

Breach = tuple[int, str]
"""The line of the source, and what it says."""


def remedy_within(sentence: str) -> bool:
    """Whether a clause of a sentence opens with an imperative, or names a command to run.

    A clause begins with the sentence, or after a mark of punctuation. Other ways to tell what to
    do, as by "must", are not found.
    """
    return _COMMAND.search(sentence) is not None or any(
        found[1].lower() in IMPERATIVES for found in _CLAUSE.finditer(sentence)
    )


def texts_of(node: ast.expr) -> Iterator[str]:
    """The sentences that an expression may make; `_` stands for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else "_" for part in node.values
        )
    elif isinstance(node, ast.BinOp):
        yield from (left + right for left in texts_of(node.left) for right in texts_of(node.right))
    elif isinstance(node, ast.IfExp):
        yield from texts_of(node.body)
        yield from texts_of(node.orelse)
    else:
        yield "_"


def is_error(call: ast.Call) -> bool:
    """Whether a call makes an error of this package, of a kind that is named or of another's."""
    made = call.func
    if isinstance(made, ast.Call):  # type(error)(...)
        return isinstance(made.func, ast.Name) and made.func.id == "type"
    return isinstance(made, (ast.Name, ast.Attribute)) and _name(made) in KINDS


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def errors_made(tree: ast.AST) -> Iterator[ast.Call]:
    yield from (n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.args and is_error(n))


def builders(tree: ast.AST) -> dict[str, int]:
    """Functions that fill a parameter into what an error says, with the place of that argument."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names = [one.arg for one in node.args.args if one.arg != "self"]
            for call in errors_made(node):
                used = {part.id for part in ast.walk(call.args[0]) if isinstance(part, ast.Name)}
                for place, name in enumerate(names):
                    if name in used and name in ("what", "reason", "so"):
                        found[node.name] = place
    return found


def breaches(tree: ast.AST, told: dict[str, int] | None = None) -> Iterator[Breach]:
    """Where an error has its remedy in its sentence, or loses that of the error it is made of.

    `told` are `builders` of the package.
    """
    for call in errors_made(tree):
        for text in texts_of(call.args[0]):
            if remedy_within(text):
                yield call.lineno, text
        named = {word.arg for word in call.keywords}
        passed = [w.value for w in call.keywords if w.arg is None]
        if any(isinstance(value, ast.Attribute) and value.attr == "data" for value in passed) and (
            "remedy" not in named
        ):
            yield call.lineno, "passes data of another error on, and not its remedy"
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        place = (told or {}).get(_name(call.func))
        if place is not None and len(call.args) > place:
            for text in texts_of(call.args[place]):
                if remedy_within(text):
                    yield call.lineno, text
    for handler in (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)):
        if handler.type and KINDS & {_name(part) for part in ast.walk(handler.type)
                                     if isinstance(part, ast.expr)}:
            for call in errors_made(handler):
                if _shows(call.args[0], handler.name):
                    yield call.lineno, f"takes str({handler.name}), with its remedy, for what"


def _shows(node: ast.expr, name: str | None) -> bool:
    """Whether an expression has the whole text of an error in it: {error}, str(error)."""
    for part in ast.walk(node):
        shown = part.value if isinstance(part, ast.FormattedValue) else (
            part.args[0] if isinstance(part, ast.Call) and _name(part.func) == "str" and part.args
            else None
        )
        if isinstance(shown, ast.Name) and shown.id == name:
            return True
    return False


@pytest.mark.slow
def test_errors_of_the_package_have_their_remedies_in_the_field() -> None:
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
    told: dict[str, int] = {}
    for tree in trees.values():
        told |= builders(tree)
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {text}"
        for path, tree in trees.items() for line, text in breaches(tree, told)
    ]
    assert not found, "\n".join(found)
    assert sum(1 for tree in trees.values() for _ in errors_made(tree)) > 300
    assert "_corrupt" in told


PLANTED = [
    'raise InvalidOption(f"h={h!r}: give a whole number", option="h")',
    'raise errors.InvalidOption("h is not a number: give one")',
    'raise ClosedIndex(f"{path} was closed. Open it again", path=path)',
    'raise InvalidOption(f"{size} is too small; or ask fewer queries at a time")',
    'raise InvalidBatch("give ids or keys, not both")',
    'raise InvalidOption(f"{rows} rows" + ("" if most else ": append some first"))',
    'raise CorruptFile(f"{path} is damaged: `simindex repair {path}` tells more")',
    'raise ReadOnlyIndex(f"{path} is open for reading (open it with mode w)")',
    'raise MissingExtra("stems need an extra: pip install \'simindex[stem]\'")',
    'raise InvalidInput(f"{record} (none allowed: skip more with --max-errors)")',
    "raise type(error)(error.what, **error.data)",
    'raise InvalidOption(f"--h {found}", **error.data) from error',
    'try: f()\nexcept InvalidOption as e: raise CorruptFile(f"is bad: {e}")',
    'try: f()\nexcept (KeyError, InvalidOption) as e: raise CorruptFile("is bad: " + str(e))',
    'def _no(path, what): return CorruptFile(f"{path} {what}")\n_no(p, "is cut off: run it again")',
]

SOUND = [
    'raise InvalidOption(f"h={h!r}", remedy="give a whole number", option="h")',
    'raise InvalidOption(f"{a}: what was read differs", remedy=error.remedy, **error.data)',
    'raise CorruptFile(f"{path} has rows that are not sorted: their file was cut short")',
    'raise ValueError("give a number")',
    'try: f()\nexcept InvalidOption as e: raise CorruptFile(f"is bad: {e.what}")',
    'try: f()\nexcept KeyError as e: raise CorruptFile(f"is bad: {e}")',
]


@pytest.mark.parametrize("source", PLANTED)
def test_a_remedy_in_a_sentence_is_found(source: str) -> None:
    tree = ast.parse(source)
    assert len(list(breaches(tree, builders(tree)))) == 1


@pytest.mark.parametrize("source", SOUND)
def test_a_sentence_without_a_remedy_is_passed_over(source: str) -> None:
    tree = ast.parse(source)
    assert not list(breaches(tree, builders(tree)))
