"""What OASIS SARIF 2.1.0 asks of a log: a property that is none of an object's is an error, too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_URI = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.\-]*:)?(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+"
)

OBJECTS: dict[str, tuple[set[str], dict[str, str]]] = {
    "log": ({"version", "runs"}, {"$schema": "text", "version": "2.1.0", "runs": "[run]"}),
    "run": ({"tool"}, {
        "tool": "tool", "invocations": "[invocation]", "results": "[result]",
        "columnKind": "utf16CodeUnits|unicodeCodePoints", "properties": "bag",
    }),
    "tool": ({"driver"}, {"driver": "component", "properties": "bag"}),
    "component": ({"name"}, {
        "name": "text", "version": "text", "semanticVersion": "text", "informationUri": "uri",
        "rules": "[rule]",
    }),
    "rule": ({"id"}, {
        "id": "text", "name": "text", "shortDescription": "message", "fullDescription": "message",
        "defaultConfiguration": "configuration", "helpUri": "uri", "help": "message",
    }),
    "configuration": (set(), {"level": "none|note|warning|error", "enabled": "flag"}),
    "message": ({"text"}, {"text": "text"}),
    "result": ({"message"}, {
        "ruleId": "text", "ruleIndex": "number", "level": "none|note|warning|error",
        "message": "message", "locations": "[location]", "relatedLocations": "[location]",
        "partialFingerprints": "texts", "properties": "bag",
    }),
    "location": (set(), {
        "id": "number", "physicalLocation": "physical", "logicalLocations": "[logical]",
        "message": "message", "properties": "bag",
    }),
    "physical": ({"artifactLocation"}, {"artifactLocation": "artifact", "region": "region"}),
    "artifact": ({"uri"}, {"uri": "uri"}),
    "region": (set(), {"startLine": "line"}),
    "logical": (set(), {"name": "text", "fullyQualifiedName": "text", "kind": "text"}),
    "invocation": ({"executionSuccessful"}, {
        "executionSuccessful": "flag", "exitCode": "number", "exitCodeDescription": "text",
        "toolExecutionNotifications": "[notification]",
    }),
    "notification": ({"message"}, {
        "message": "message", "level": "none|note|warning|error", "locations": "[location]",
    }),
}
"""Kind of object -> what it must have, and the kinds of what it may have."""


def faults(value: Any, kind: str = "log", at: str = "log") -> Iterator[str]:
    """Where a log is not as the standard asks."""
    if kind.startswith("["):
        if not isinstance(value, list):
            yield f"{at}: no array"
            return
        for number, item in enumerate(value):
            yield from faults(item, kind[1:-1], f"{at}[{number}]")
        return
    if kind not in OBJECTS:
        if not _is(value, kind):
            yield f"{at}: {value!r} is not {kind}"
        return
    if not isinstance(value, dict):
        yield f"{at}: no object"
        return
    needed, known = OBJECTS[kind]
    yield from (f"{at}: no {name}" for name in sorted(needed - value.keys()))
    yield from (f"{at}: an unknown {name}" for name in sorted(value.keys() - known.keys()))
    for name in value.keys() & known.keys():
        yield from faults(value[name], known[name], f"{at}.{name}")
    if kind == "run":
        rules = value["tool"]["driver"].get("rules", [])
        for result in value.get("results", []):
            if rules[result["ruleIndex"]]["id"] != result["ruleId"]:
                yield f"{at}: the rule {result['ruleId']} is not at {result['ruleIndex']}"


def _is(value: Any, kind: str) -> bool:
    if kind == "number":
        return type(value) is int
    if kind == "line":
        return type(value) is int and value >= 1
    if kind == "flag":
        return isinstance(value, bool)
    if kind == "bag":
        return isinstance(value, dict)
    if kind == "texts":
        return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    if not isinstance(value, str):
        return False
    if kind == "uri":
        return _URI.fullmatch(value) is not None
    return kind == "text" or value in kind.split("|")
