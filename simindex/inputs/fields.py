"""Fields of records by their names, those of inner objects with dots: `doc.text`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MISSING: Final = object()
"""What a record has where it has no such field."""

NAMED = 6
"""Fields of a record that a message names."""


def field_of(record: Mapping[str, Any], name: str) -> Any:
    """The value of a field; MISSING if there is none.

    A field whose own name has dots comes first. Otherwise `a.b` is the field b of the object that
    the field a holds.
    """
    if name in record:
        return record[name]
    found: Any = record
    for part in name.split(".") if "." in name else ():
        if not isinstance(found, Mapping) or part not in found:
            return MISSING
        found = found[part]
    return MISSING if found is record else found


def field_names(record: Mapping[str, Any]) -> str:
    """The fields of a record for a message, the first of many, those of an object with its own."""
    names: list[str] = []
    for name, value in record.items():
        inner = [f"{name}.{key}" for key in value] if isinstance(value, Mapping) else []
        names += inner or [name]
        if len(names) > NAMED:
            break
    listed = ", ".join(repr(name[:40]) for name in names[:NAMED])
    return listed + (", ..." if len(names) > NAMED else "") if names else "no fields"
