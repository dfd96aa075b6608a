"""`values.dataclass`: what it makes is what the standard library makes, with its methods later."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from simindex import values

Decorator = Callable[..., Any]


def frozen(dataclass: Decorator) -> Any:
    @dataclass(frozen=True, slots=True)
    class Frozen:
        """Two numbers."""

        x: int
        y: int = 2

        @property
        def sum(self) -> int:
            return self.x + self.y

    return Frozen


def changing(dataclass: Decorator) -> Any:
    @dataclass(slots=True)
    class Changing:
        x: int
        y: list[int] = field(default_factory=list)
        z: int = field(default=3, repr=False, compare=False)

    return Changing


def open_ended(dataclass: Decorator) -> Any:
    @dataclass(frozen=True)
    class OpenEnded:
        x: int
        y: int = field(default=2)
        later: dict[str, int] = field(default_factory=dict, compare=False)

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("x")

        @cached_property
        def sum(self) -> int:
            return self.x + self.y

    return OpenEnded


def by_identity(dataclass: Decorator) -> Any:
    @dataclass(frozen=True, slots=True, eq=False, repr=False)
    class ByIdentity:
        x: int
        y: int = 2

    return ByIdentity


def with_own(dataclass: Decorator) -> Any:
    @dataclass(slots=True)
    class WithOwn:
        x: int
        y: int = 2
        made: int = field(init=False)

        def __post_init__(self) -> None:
            self.made = self.x

        def __repr__(self) -> str:
            return f"own {self.x}"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    return WithOwn


def derived(dataclass: Decorator) -> Any:
    @dataclass(frozen=True, slots=True)
    class Base:
        x: int
        y: int = 2

    @dataclass(frozen=True, slots=True)
    class Derived(Base):
        z: int = 3

    return Derived


SHAPES = (frozen, changing, open_ended, by_identity, with_own, derived)


def told(act: Callable[[], Any]) -> Any:
    """What a call gives, or the kind of its error and, of ours, what it says."""
    try:
        return act()
    except (TypeError, AttributeError, ValueError) as error:
        return type(error).__name__, str(error)


def does(cls: Any) -> dict[str, Any]:
    """What a class and its objects do, so that two can be compared."""
    one = cls(1)
    found: dict[str, Any] = {
        "signature": str(inspect.signature(cls)),
        "annotations": dict(cls.__init__.__annotations__),
        "names": (cls.__qualname__, cls.__module__, cls.__init__.__qualname__),
        "fields": [(f.name, f.type, f.init, f.compare) for f in dataclasses.fields(cls)],
        "match": cls.__match_args__,
        "slots": cls.__dict__.get("__slots__"),
        "parameters": repr(cls.__dataclass_params__),
        "repr": told(lambda: repr(one).split(" object at ")[0]),
        "values": told(lambda: (one.x, one.y)),
        "equal": (one == cls(1), one == cls(2), one == (1, 2), one == one),
        "other": one != cls(1),
        "hash": told(lambda: hash(cls(1)) == hash(cls(1))),
        "named": told(lambda: cls(x=4, y=5).y),
        "changed": told(lambda: dataclasses.replace(one, x=9).x),
        "as_dict": told(lambda: dataclasses.asdict(one)),
        "copied": told(lambda: copy.copy(one).x),
        "assigned": told(lambda: setattr(cls(1), "x", 5)),
        "another": isinstance(told(lambda: setattr(cls(1), "other", 5)), tuple),
        "deleted": told(lambda: delattr(cls(1), "x")),
        "none": told(cls),
        "many": told(lambda: cls(1, 2, 3, 4, 5, 6)),
        "unknown": told(lambda: cls(1, unknown=2)),
        "negative": told(lambda: cls(-1).x),
        "default": getattr(cls, "y", None) == 2,
        "apart": told(lambda: cls(1).y is not cls(1).y),
    }
    match one:
        case cls(x):
            found["matched"] = x
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_a_class_does_what_that_of_the_library_does(shape: Callable[[Decorator], Any]) -> None:
    ours, theirs = does(shape(values.dataclass)), does(shape(dataclasses.dataclass))
    assert ours == theirs


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("first", ["repr", "eq", "hash", "fields", "init"])
def test_any_method_may_be_the_first(shape: Callable[[Decorator], Any], first: str) -> None:
    asked: dict[str, Callable[[Any], Any]] = {
        "repr": lambda one: repr(one).split(" object at ")[0],
        "eq": lambda one: one == one,
        "hash": lambda one: hash(one) is not None,
        "fields": lambda one: [f.name for f in dataclasses.fields(one)],
        "init": lambda one: type(one)(1).x,
    }
    ours, theirs = shape(values.dataclass)(1), shape(dataclasses.dataclass)(1)
    assert told(lambda: asked[first](ours)) == told(lambda: asked[first](theirs))


def test_a_method_is_compiled_once_and_only_when_it_is_used() -> None:
    made = frozen(values.dataclass)
    late = {
        name for name, value in vars(made).items()
        if isinstance(value, values._Late) or getattr(value, "__module__", "") == values.__name__
    }
    assert {"__init__", "__repr__", "__eq__", "__hash__", "__dataclass_fields__"} <= late
    one = made(1)
    initializer = vars(made)["__init__"]
    assert inspect.isfunction(initializer)
    assert made(2) == made(2) != one
    assert vars(made)["__init__"] is initializer
    assert vars(made)["__repr__"].__module__ == values.__name__


def test_an_interrupt_while_a_method_is_made_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """`==`, `repr` and `hash` would go on as if the class had no such method."""
    calls: list[Callable[[Any], Any]] = [repr, hash, lambda one: one == type(one)(1)]
    for call in calls:
        one = frozen(values.dataclass)(1)
        with monkeypatch.context() as patched:
            patched.setattr(values.dataclasses, "dataclass", interrupting)
            with pytest.raises(KeyboardInterrupt):
                call(one)
        call(one)


def interrupting(**options: Any) -> Any:
    raise KeyboardInterrupt


@values.dataclass(frozen=True, slots=True)
class Point:
    """At the top of a module, so that it pickles."""

    x: int
    y: tuple[int, ...] = ()


def test_values_pickle_where_nothing_was_used_before() -> None:
    data = pickle.dumps(Point(1, (2,)))
    path = [*sys.path, str(Path(__file__).parents[1])]  # where this module is found by its name
    code = f"import pickle, sys; sys.path[:] = {path!r}; print(pickle.loads({data!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Point(x=1, y=(2,))\n"


def test_a_class_of_the_library_may_be_derived() -> None:
    @dataclasses.dataclass(frozen=True)
    class Named(Point):
        name: str = "a"

    assert repr(Named(1, (), "b")).endswith("Named(x=1, y=(), name='b')")
    assert Named(1) == Named(1) != Point(1)
