"""`dataclass` of the standard library, whose methods are compiled when they are first used.

    @dataclass(frozen=True, slots=True)     at once        __slots__, and what refuses assignments
    class Match:                            when it is     __init__, compiled from the fields;
        query: int                          first used     __repr__, __eq__, __hash__,
        distance: int = 0                                  __dataclass_fields__ of the library

A command imports dozens of such classes, makes objects of a third of them, and compares or prints
few. The library would compile up to six methods of each of them, in 0.5 ms.

1. A class does what it does with the decorator of the library and the same arguments. 2. What is
late is made once and put into its place, so that objects are made as fast as before. 3. To a type
checker this is the library's decorator.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import MISSING
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True,
        repr: bool = True,
    ) -> Any:
        """See `dataclasses.dataclass`."""

        def made(cls: type) -> type:
            return _made(cls, frozen=frozen, slots=slots, eq=eq, repr=repr)

        return made if cls is None else made(cls)


NOTHING = {"init": False, "repr": False, "eq": False}
"""With these options the library reads the fields and compiles no method."""

LATE = {
    "__dataclass_fields__": NOTHING,
    "__match_args__": NOTHING,
    "__repr__": NOTHING | {"repr": True},
    "__eq__": NOTHING | {"eq": True},
    "__hash__": NOTHING | {"eq": True, "unsafe_hash": True},
}
if sys.version_info >= (3, 13):
    LATE["__replace__"] = NOTHING
"""Attribute -> the options with which the library makes it."""

SILENT = ("__repr__", "__eq__", "__hash__")
"""Methods whose look-up loses an error."""


class _Factory:
    """Stands for a default that is made anew for each object."""

    def __repr__(self) -> str:
        return "<factory>"  # in signatures


FACTORY = _Factory()


class _Late:
    """An attribute of the class `home`, which is made when it is first asked for."""

    __slots__ = ("home", "make", "name")

    def __init__(self, home: type, name: str, make: Callable[[], Any]) -> None:
        self.home, self.name, self.make = home, name, make

    def __get__(self, instance: object, owner: type) -> Any:
        found = self.make()
        setattr(self.home, self.name, found)
        return found.__get__(instance, owner) if hasattr(found, "__get__") else found


def _at_first_call(home: type, name: str, make: Callable[[], Any]) -> Callable[..., Any]:
    """A method that is made when it is first called, and takes its place then.

    Not a descriptor: where one raises, as at an interrupt, `==`, `repr` and `hash` go on as if the
    class had no such method.
    """

    def method(self: object, *others: object) -> Any:
        made = make()
        setattr(home, name, made)
        return made(self, *others)

    method.__name__ = name
    return method


def _made(cls: type, *, frozen: bool, slots: bool, eq: bool, repr: bool) -> type:
    written = {
        name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")
    }

    def by_the_library(**options: bool) -> Any:
        copy = type(cls)(cls.__name__, cls.__bases__, dict(written))
        return dataclasses.dataclass(**options)(copy)

    def late(name: str) -> Any:
        # Of a frozen class the library compiles two methods more, so this is told where it must be.
        inherits = any(map(dataclasses.is_dataclass, cls.__bases__))
        return vars(by_the_library(**LATE[name], frozen=frozen and inherits))[name]

    def initializer() -> Callable[..., None]:
        return _initializer(home, dataclasses.fields(home), frozen=frozen)

    def parameters() -> Any:
        return by_the_library(
            frozen=frozen, eq=eq, repr=repr, slots=slots
        ).__dataclass_params__

    home = _without_defaults(cls, written, slots=slots)
    given: dict[str, Any] = {
        name: (_at_first_call if name in SILENT else _Late)(home, name, partial(late, name))
        for name in LATE
    }
    if not repr:
        del given["__repr__"]
    if not eq:
        del given["__eq__"], given["__hash__"]
    elif not frozen:
        given["__hash__"] = None
    given["__init__"] = _Late(home, "__init__", initializer)
    given["__dataclass_params__"] = _Late(home, "__dataclass_params__", parameters)
    if frozen:
        given |= _refusing(home)
    if frozen and slots:
        given |= {"__getstate__": _state, "__setstate__": _set_state}
    for name in given.keys() - written.keys():
        setattr(home, name, given[name])
    return home


def _without_defaults(cls: type, written: dict[str, Any], *, slots: bool) -> type:
    """The class, or one with slots in its place, whose fields have no values of their own."""
    fields = cls.__annotations__
    if not slots:
        for name in fields:
            if isinstance(default := written.get(name), dataclasses.Field):
                if default.default is MISSING:
                    delattr(cls, name)
                else:
                    setattr(cls, name, default.default)
        return cls
    inherited = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
    kept = {name: value for name, value in written.items() if name not in fields}
    kept["__slots__"] = tuple(name for name in fields if name not in inherited)
    kept["__qualname__"] = cls.__qualname__
    return type(cls)(cls.__name__, cls.__bases__, kept)


def _initializer(
    home: type, fields: tuple[dataclasses.Field[Any], ...], *, frozen: bool
) -> Callable[..., None]:
    """`__init__` of a class, as the library would write it."""
    values = {"_set": object.__setattr__, "_factory": FACTORY}
    parameters, lines = ["self"], []
    for field in fields:
        name, value = field.name, field.name
        if field.default_factory is not MISSING:
            values[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}()"
            if field.init:
                value += f" if {name} is _factory else {name}"
            parameters += [f"{name}=_factory"] * field.init
        elif field.default is not MISSING:
            values[f"_default_{name}"] = field.default
            parameters += [f"{name}=_default_{name}"] * field.init
        else:
            parameters += [name] * field.init
        if field.init or field.default_factory is not MISSING:
            lines.append(
                f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}"
            )
    if hasattr(home, "__post_init__"):
        lines.append("self.__post_init__()")
    text = f"def __init__({', '.join(parameters)}):\n  " + "\n  ".join(lines or ["pass"])
    made: dict[str, Any] = {}
    exec(text, values, made)  # noqa: S102 - names of fields, from the source of a class
    initializer: Callable[..., None] = made["__init__"]
    initializer.__qualname__ = f"{home.__qualname__}.__init__"
    initializer.__module__ = home.__module__
    initializer.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
    return initializer


def _refusing(home: Any) -> dict[str, Callable[..., None]]:
    """What refuses to assign to the fields of a frozen class, and to delete them."""

    def protects(value: object, name: str) -> bool:
        return type(value) is home or name in home.__annotations__

    def assign(self: object, name: str, value: object) -> None:
        if protects(self, name):
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(home, self).__setattr__(name, value)

    def delete(self: object, name: str) -> None:
        if protects(self, name):
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(home, self).__delattr__(name)

    return {"__setattr__": assign, "__delattr__": delete}


def _state(self: Any) -> list[Any]:
    """What pickle keeps of an object with slots."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
