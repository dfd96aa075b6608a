"""Writes docs/reference/api.md from the docstrings of the public names.

    python tools/reference.py            prints the page
    python tools/reference.py --write    writes it

The page has a section for each row of GROUPS, and in it each name with its signature, its
docstring, its fields and its methods. Docstrings are numpydoc: a line of dashes marks a section,
and the entries of a section become a list.
"""

from __future__ import annotations

import argparse
import ast
import functools
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import simindex

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "api.md"

GROUPS: dict[str, tuple[str, ...]] = {
    "Open an index": ("open", "IndexOptions", "Index", "repair"),
    "Make fingerprints": (
        "Recipe", "Batch", "Skipped", "Feature", "DocumentFrequencies", "hamming",
    ),
    "Matches": ("Match", "Matches", "QueryStats", "TopMatches", "TopStats"),
    "All pairs and clusters": (
        "find_all", "find_clusters", "rotation_pairs", "Pair", "SimilarPair", "Pairs", "EqualRows",
        "CollapsedPairs", "RotationPairs", "RotationStats", "Cluster", "SimilarCluster", "Clusters",
        "Verification",
    ),
    "Reports": (
        "GateReport", "GateLimits",
        "IndexStats", "Compaction", "Skew", "Hot", "Audit", "SpotCheck", "Calibration", "Machine",
        "Explanation", "TopExplanation", "Finding", "RepairReport", "BackupReport",
    ),
    "Two documents": (
        "explain_pair", "PairExplanation", "FeaturePair", "FlippedBit", "Dominance", "WordChange",
    ),
    "A recommended threshold": (
        "calibrate", "CalibrationReport", "Advice", "PairRates", "SimilarityRates", "EditRates",
        "Rate",
    ),
    "Errors": (
        "SimindexError", "InvalidOption", "InvalidBatch", "RecipeMismatch", "InvalidInput",
        "MissingExtra", "IndexNotFound", "IndexExists", "IndexLocked", "ReadOnlyIndex",
        "TooManyMatches",
        "ClosedIndex", "StorageFailed", "StorageFull", "CommitFailed", "UnsupportedStorage",
        "ClusterFailed", "CorruptFile", "FormatTooOld", "FormatTooNew",
    ),
}  # fmt: skip
"""The public names, in the order of the page."""

OPENING = """\
# The Python API

`python tools/reference.py --write` makes this page from the docstrings. All names belong to the
module `simindex`. `help(simindex.Index)` shows the same text. [glossary.md](glossary.md) explains
the terms. [methods.md](../explanation/methods.md) explains the methods and the sources in brackets,
such as [PSM].

"""

SPECIAL = ("__contains__", "__getitem__", "__len__", "__iter__", "__add__")
"""Methods with two underscores that users call, by another spelling."""

_ENTRIES = ("Parameters", "Returns", "Yields", "Raises", "Attributes")
"""Sections that are lists of entries."""


def page() -> str:
    """The whole page."""
    parts = [OPENING]
    for title, names in GROUPS.items():
        links = ", ".join(f"[{name}](#{name.lower()})" for name in names)
        parts.append(f"## {title}\n\n{links}\n\n")
        for name in names:
            parts.extend(described(name, getattr(simindex, name)))
    return re.sub(r"\n{3,}", "\n\n", "".join(parts)).rstrip() + "\n"


def described(name: str, value: Any) -> Iterator[str]:
    """The lines about one public name."""
    yield f"### {name}\n\n"
    if not inspect.isclass(value):
        yield signature(name, value) + markdown(inspect.getdoc(value) or "")
        return
    documented, listed = markdown(own_doc(value)), list(fields(value))
    if issubclass(value, BaseException):
        bases = ", ".join(base.__name__ for base in value.__bases__)
        code = getattr(value, "exit_code", None)
        yield f"Kind of {bases}. Exit code {code}. "
    elif "**Parameters**" in documented or (not listed and "__init__" in vars(value)):
        yield signature(name, value)
    yield documented
    if "**Parameters**" not in documented:
        yield from listed
    for member, inner in vars(value).items():
        if member.startswith("_") and member not in SPECIAL:
            continue
        if isinstance(inner, property | functools.cached_property):
            yield f"#### {name}.{member}\n\n" + markdown(inspect.getdoc(inner) or "")
        elif callable(inner) or isinstance(inner, classmethod | staticmethod):
            method = getattr(value, member)
            text = inspect.getdoc(method) if vars_doc(inner) else None
            if text:
                yield f"#### {name}.{member}\n\n" + signature(member, method) + markdown(text)


def vars_doc(member: Any) -> str | None:
    """The docstring that a member has itself, and not from a base class."""
    return getattr(getattr(member, "__func__", member), "__doc__", None)


def own_doc(kind: type) -> str:
    """The docstring of a class, without the one that a dataclass or a named tuple makes up."""
    doc = inspect.cleandoc(vars(kind).get("__doc__") or "")
    return "" if doc.startswith(f"{kind.__name__}(") else doc


def signature(name: str, value: Any) -> str:
    """A code block with the signature, on several lines if it is long."""
    try:
        called = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    texts, starred = [], False
    for one in called.parameters.values():
        if one.name == "self":
            continue
        starred = starred or one.kind is one.VAR_POSITIONAL
        if one.kind is one.KEYWORD_ONLY and not starred:
            texts.append("*")
            starred = True
        stars = "*" * (one.kind is one.VAR_POSITIONAL) + "**" * (one.kind is one.VAR_KEYWORD)
        default = "" if one.default is one.empty else f" = {one.default!r}"
        texts.append(f"{stars}{one.name}{_annotation(': ', one.annotation)}{default}")
    end = ")" if inspect.isclass(value) else f"){_annotation(' -> ', called.return_annotation)}"
    line = f"{name}({', '.join(texts)}{end}"
    if len(line) > 96:
        line = f"{name}(\n" + "".join(f"    {text},\n" for text in texts) + end
    return f"```text\n{line}\n```\n\n"


def _annotation(before: str, annotation: Any) -> str:
    if annotation is inspect.Signature.empty:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return before + text.strip("'")


def fields(kind: type) -> Iterator[str]:
    """The annotated fields of a class with the texts below them, as a table."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(tree, ast.ClassDef)
    rows = []
    for at, node in enumerate(tree.body):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        if node.target.id.startswith("_"):
            continue
        after = tree.body[at + 1] if at + 1 < len(tree.body) else None
        text = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = " ".join(inspect.cleandoc(str(after.value.value)).split())
        kind_of = ast.unparse(node.annotation).replace("|", "\\|")
        default = "" if node.value is None else _default(node.value)
        rows.append(f"| `{node.target.id}` | {kind_of} | {default} | {inline(text)} |\n")
    if rows:
        yield "| field | type | default | |\n|---|---|---|---|\n" + "".join(rows) + "\n"


def _default(value: ast.expr) -> str:
    text = ast.unparse(value)
    return "" if text.startswith("field(") else f"`{text}`"


def markdown(doc: str) -> str:
    """A numpydoc docstring as Markdown."""
    lines = doc.splitlines()
    parts: list[str] = []
    section, held = "", list[str]()

    def end() -> None:
        if any(line.strip() for line in held):
            parts.append(entries(held) if section in _ENTRIES else prose(held))
        held.clear()

    for at, line in enumerate(lines):
        underlined = at + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[at + 1].strip())
        if underlined and line.strip():
            end()
            section = line.strip()
            parts.append(f"**{section}**\n\n")
        elif not (re.fullmatch(r"-{3,}", line.strip()) and at and lines[at - 1].strip() == section):
            held.append(line)
    end()
    return "".join(parts)


def prose(lines: list[str]) -> str:
    """Paragraphs as they are; indented lines stay a block of code."""
    return inline("\n".join(lines).strip("\n")) + "\n\n"


def entries(lines: list[str]) -> str:
    """Entries of a section as a list: the first line of each is not indented."""
    listed: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.strip() and not line.startswith(" "):
            listed.append((line.strip(), []))
        elif listed:
            listed[-1][1].append(line.strip())
    made = []
    for head, text in listed:
        name, colon, kind = head.partition(" : ")
        title = f"`{name}` : {inline(kind)}" if colon else f"`{head}`"
        body = inline(" ".join(" ".join(text).split()))
        made.append(f"- {title}" + (f". {body}" if body else "") + "\n")
    return "".join(made) + "\n"


def inline(text: str) -> str:
    """Double backticks as single ones, and asterisks that are not emphasis."""
    text = re.sub(r"``(.+?)``", r"`\1`", text)
    return "".join(
        part if part.startswith("`") else part.replace("*", "\\*").replace("<", "\\<")
        for part in re.split(r"(`[^`]*`)", text)
    )


def main() -> None:
    """Prints or writes the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    if parser.parse_args().write:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())


if __name__ == "__main__":
    main()
