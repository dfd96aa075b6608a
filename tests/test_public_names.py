"""What `import simindex` gives: everything that its calls return has a name there."""

from __future__ import annotations

import inspect
import re
import typing

import simindex

CLASSES = [
    getattr(simindex, name) for name in simindex.__all__
    if inspect.isclass(getattr(simindex, name))
]


def returned() -> set[str]:
    """Names of the package's own classes in the return annotations of public calls."""
    found: set[str] = set()
    functions = [getattr(simindex, name) for name in simindex.__all__]
    for one in CLASSES:
        functions += [member for name, member in vars(one).items() if not name.startswith("_")]
    for function in functions:
        function = getattr(function, "fget", function)
        annotations = getattr(inspect.unwrap(function), "__annotations__", {}) if (
            inspect.isfunction(function)
        ) else {}
        found.update(re.findall(r"\b[A-Z]\w+", str(annotations.get("return", ""))))
    return found


def test_what_public_calls_return_is_exported() -> None:
    own = {name for name in returned() if _is_own(name)}
    assert {"Explanation", "TopExplanation", "Matches", "Machine", "Calibration"} <= own
    assert own <= set(simindex.__all__), own - set(simindex.__all__)


def _is_own(name: str) -> bool:
    return not hasattr(typing, name) and name not in KNOWN


KNOWN = frozenset(
    {"None", "U16", "U32", "U64", "F32", "F64", "I64", "Bools", "NDArray", "KeyKind", "IdfTable"}
)
"""Arrays and parts of them; `KeyKind` is a choice of strings, `IdfTable` a part of a recipe."""


def test_every_exported_name_is_there_once_in_order() -> None:
    assert len(set(simindex.__all__)) == len(simindex.__all__)
    assert all(hasattr(simindex, name) for name in simindex.__all__)
