"""What the settings of a crawl say of its index; a wrong one is refused by its name.

    SIMINDEX_PATH, SIMINDEX_RESPONSE_PATH, ...    as text or as values of Python
    CrawlSettings                                 checked as far as possible without the index

docs/how-to/scrapy.md has all settings. `CrawlIndex` checks the rest once it has opened the index.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from math import inf
from typing import TYPE_CHECKING, Any, Self

import simindex
from simindex.checks import is_int
from simindex.errors import InvalidOption, MissingExtra, SimindexError
from simindex.inputs.markup import EXTRACTORS
from simindex.values import dataclass

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

PATH, RESPONSE_PATH = "SIMINDEX_PATH", "SIMINDEX_RESPONSE_PATH"
DISTANCE, EXPIRE_S, RECIPE = "SIMINDEX_DISTANCE", "SIMINDEX_EXPIRE_S", "SIMINDEX_RECIPE"

ITEM_ACTION, RESPONSE_ACTION = "SIMINDEX_ITEM_ACTION", "SIMINDEX_RESPONSE_ACTION"
TEXT_FIELD, KEY_FIELD, HTML = "SIMINDEX_TEXT_FIELD", "SIMINDEX_KEY_FIELD", "SIMINDEX_HTML"

ACTIONS = ("drop", "tag")

RECIPE_OPTIONS = tuple(field.name for field in fields(simindex.Recipe))


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """The settings of one component of a crawl."""

    path: str
    path_setting: str
    """The name of the setting that has the path."""
    action: str
    distance: int | None
    commit_s: float
    wait_s: float
    expire_s: float | None
    recipe: simindex.Recipe | None
    """None if the setting has no options."""
    recipe_h: int | None
    """The radius, if the setting of the recipe names one."""

    @classmethod
    def of(cls, settings: BaseSettings, *, of_responses: bool) -> Self:
        """Those of the middleware, or of the pipeline. InvalidOption names a wrong setting.

        The settings of both are looked at, because the middleware opens its index before Scrapy
        makes the pipeline.
        """
        own = of_responses and settings.get(RESPONSE_PATH)
        path_setting = RESPONSE_PATH if own else PATH
        path = settings.get(path_setting)
        if not path or not isinstance(path, str | os.PathLike) or "\0" in str(path):
            raise refused(path_setting, path, "a path, such as pages.sim")
        items = _action(settings, ITEM_ACTION, "drop")
        responses = _action(settings, RESPONSE_ACTION, "tag")
        for setting in (TEXT_FIELD, KEY_FIELD):
            name_of_field(settings, setting)
        html_of(settings)
        options = _recipe_options(settings.get(RECIPE))
        expires = settings.get(EXPIRE_S) is not None
        return cls(
            str(path), path_setting, responses if of_responses else items,
            _distance(settings.get(DISTANCE)),
            _seconds(settings, "SIMINDEX_COMMIT_S", 5.0),
            _seconds(settings, "SIMINDEX_WAIT_S", 0.0),
            _seconds(settings, EXPIRE_S, 0.0, finite=True) if expires else None,
            _recipe(options), options.get("h"),
        )


def name_of_field(settings: BaseSettings, setting: str) -> str | None:
    """The field of items that a setting names. InvalidOption if it is no name."""
    found = settings.get(setting)
    if found is not None and not (isinstance(found, str) and found):
        raise refused(setting, found, "the name of a field")
    return found


def html_of(settings: BaseSettings) -> str:
    """What finds the text of a page. InvalidOption if nothing has that name."""
    found = settings.get(HTML, next(iter(EXTRACTORS)))
    if not isinstance(found, str) or found not in EXTRACTORS:
        raise refused(HTML, found, " or ".join(EXTRACTORS))
    return found


def refused(setting: str, found: object, wanted: str) -> InvalidOption:
    """The error of a setting that has a wrong value."""
    return InvalidOption(
        f"the setting {setting} is {found!r:.80}", remedy=f"give {wanted}", option=setting,
        found=found, expected=wanted,
    )


def of_setting(
    setting: str, error: SimindexError, *, remedy: str | None = None
) -> SimindexError:
    """An error of what a setting was used for, which names the setting, too.

    It has the remedy of that error unless another one is given.
    """
    return type(error)(
        f"the setting {setting} is not valid: {error.what}", remedy=remedy or error.remedy,
        **{**error.data, "option": setting},
    )


def _action(settings: BaseSettings, setting: str, default: str) -> str:
    found = settings.get(setting)
    if found is None:
        return default
    if not isinstance(found, str) or found not in ACTIONS:
        raise refused(setting, found, " or ".join(ACTIONS))
    return found


def _distance(found: Any) -> int | None:
    if isinstance(found, str):
        try:
            return int(found)
        except ValueError:
            pass
    elif found is None or is_int(found):
        return found
    raise refused(DISTANCE, found, "a number of bits")


def _seconds(
    settings: BaseSettings, setting: str, default: float, *, finite: bool = False
) -> float:
    try:
        found = settings.getfloat(setting, default)
    except (TypeError, ValueError, OverflowError):
        found = -1.0
    if not found >= 0 or (finite and found == inf):
        raise refused(setting, settings.get(setting), "a number of seconds from 0 on")
    return found


def _recipe_options(found: Any) -> dict[str, Any]:
    """What a recipe is made with, by name; from JSON where the setting is text."""
    if found is None:
        return {}
    try:
        given = json.loads(found) if isinstance(found, str) else found
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, Mapping):
        raise refused(RECIPE, found, 'options of a recipe by name, such as {"bits": 128}')
    unknown = [name for name in given if name not in RECIPE_OPTIONS]
    if unknown:
        raise InvalidOption(
            f"the setting {RECIPE} has {unknown[0]!r}, which is no option of a recipe",
            remedy=f"give some of {', '.join(RECIPE_OPTIONS)}", option=RECIPE, found=unknown[0],
            expected=RECIPE_OPTIONS,
        )
    return dict(given)


def _recipe(options: dict[str, Any]) -> simindex.Recipe | None:
    try:
        return simindex.Recipe(**options) if options else None
    except (InvalidOption, MissingExtra) as error:
        raise of_setting(RECIPE, error) from error
