"""What is public and missing from the table of calls: methods, properties, arguments, choices."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_args

import simindex
from reliability import calls
from reliability.calls import METHODS
from simindex.index.handle import Mode
from simindex.storage.files.checksums import VERIFY

CHOICES: dict[str, tuple[Any, ...]] = {
    "query.method": METHODS, "ingest.method": METHODS, "explain.method": METHODS,
    "top.method": ("auto", "scan", "issl"), "explain_top.method": ("auto", "scan", "issl"),
    "pairs.method": ("auto", "blocks"),
    "clusters.mode": ("components", "star"), "find_clusters.mode": ("components", "star"),
    "open.mode": get_args(Mode), "open.verify": VERIFY,
}
"""Values of arguments that take paths of their own; of flags both are taken."""

EXCEPTIONS: dict[str, str] = {
    "Index.__init__": "made by simindex.open, which takes the same arguments",
    "Index.path": "a value that the handle was given",
    "Index.mode": "a value that the handle was given",
    "Index.options": "a value that the handle read when it was opened",
    "backup.path": "next to the specimen",
    "open.path": "where the specimen is", "repair.path": "where the specimen is",
}
"""What no row has, and why."""

SPECIAL = ("__init__", "__enter__", "__exit__", "__len__", "__repr__", "__reduce__",
           "__bool__", "__iter__", "__contains__")
"""Methods with underscores that users call, by syntax or by functions of Python."""


def public(index: type = simindex.Index, package: Any = simindex) -> dict[str, dict[str, Any]]:
    """Arguments, and their defaults, of all that users call: `Index.<name>` and functions."""
    found: dict[str, dict[str, Any]] = {}
    for name in dir(index):
        if name.startswith("_") and (name not in SPECIAL or not _is_ours(index, name)):
            continue
        member = inspect.getattr_static(index, name)
        found[f"Index.{name}"] = {} if isinstance(member, property) else _arguments(
            getattr(index, name)
        )
    for name in package.__all__:
        if inspect.isfunction(getattr(package, name)):
            found[name] = _arguments(getattr(package, name))
    return found


def _is_ours(index: type, name: str) -> bool:
    return any(name in vars(kind) for kind in index.__mro__ if kind is not object)


def _arguments(function: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.name != "self"}


def uncovered(index: type = simindex.Index, package: Any = simindex) -> list[str]:
    """What is public and in no row: calls, `call(argument)` and `call(argument=value)`."""
    missing: list[str] = []
    for name, arguments in public(index, package).items():
        method = name.removeprefix("Index.")
        rows = [call for call in calls.CALLS if call.method == method
                and bool(call.mode) == name.startswith("Index.")]
        if name in EXCEPTIONS:
            continue
        if not rows:
            missing.append(name)
            continue
        for argument, default in arguments.items():
            if f"{method}.{argument}" in EXCEPTIONS:
                continue
            given = [row.arguments[argument] for row in rows if argument in row.arguments]
            choices = CHOICES.get(f"{method}.{argument}", ())
            if isinstance(default, bool):
                choices = (False, True)
            if not given:
                missing.append(f"{name}({argument})")
            missing += [
                f"{name}({argument}={choice!r})" for choice in choices
                if not any(type(one) is type(choice) and one == choice for one in given)
            ]
    return missing


def unknown(index: type = simindex.Index, package: Any = simindex) -> list[str]:
    """Rows and exceptions that name what is not there (any more)."""
    known = public(index, package)
    found = []
    for call in calls.CALLS:
        name = f"Index.{call.method}" if call.mode else call.method
        found += [f"{name}({argument})" for argument in call.arguments
                  if argument not in known.get(name, {})]
        found += [] if name in known else [name]
    return found
