"""The index of a crawl: opened once in a process, and checked before the first text comes.

    CrawlIndex.open     settings and index fit together, or the crawl ends with an error
    CrawlIndex.nearest  an earlier text, or the text is added
    CrawlIndex.close    the last component that uses the index closes it

1. Nothing is created, changed or expired for a component whose settings do not fit. 2. Components
of a process share an index by the place where it is, however their settings spell its path. 3. All
of them use one recipe, also before the index has stored it.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING

import simindex
from simindex.errors import IndexNotFound, InvalidBatch, InvalidOption
from simindex.index.first_texts import awaits_recipe, recipe_of_texts, takes_str_keys
from simindex.integrations.crawl_settings import (
    DISTANCE,
    EXPIRE_S,
    RECIPE,
    CrawlSettings,
    of_setting,
    refused,
)
from simindex.records.arguments import as_keys
from simindex.simhash.recipe_differences import contrast
from simindex.values import dataclass

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


@dataclass
class _Shared:
    """An index that is open for writing, and how many components of this process use it."""

    place: str
    index: simindex.Index
    recipe: simindex.Recipe
    users: int = 0


_OPEN: dict[str, _Shared] = {}
"""By the real path."""

_OPENING = Lock()


class CrawlIndex:
    """The texts of one crawl in an index, which all components of the process share."""

    def __init__(self, settings: CrawlSettings, crawler: Crawler) -> None:
        self.settings: CrawlSettings = settings
        self._crawler = crawler
        self._recipe = settings.recipe or simindex.Recipe()
        self._shared: _Shared | None = None

    def open(self) -> None:
        """Opens the index, and waits for its turn where another process writes it.

        Texts that have expired are deleted. A new index has what the settings ask for.

        Raises
        ------
        InvalidOption
            If the settings do not fit the index, or the index takes no texts with keys.
        MissingExtra
            If its recipe needs a package that is not installed.
        SimindexError
            As `simindex.open`.
        """
        place = os.path.realpath(self.settings.path)
        with _OPENING:
            shared = _OPEN.get(place)
            index = self._opened() if shared is None else shared.index
            try:
                self._recipe = self._fitting(index, None if shared is None else shared.recipe)
                self._expire(index)
            except BaseException:
                if shared is None:
                    index.close()
                raise
            if shared is None:
                shared = _OPEN[place] = _Shared(place, index, self._recipe)
            shared.users += 1
        self._shared = shared

    def _opened(self) -> simindex.Index:
        settings = self.settings
        try:
            return simindex.open(settings.path, "w", wait_s=settings.wait_s)
        except IndexNotFound:
            pass
        except InvalidOption as error:
            raise of_setting(settings.path_setting, error) from error
        self._check(self._recipe, self._recipe.bits)
        options = simindex.IndexOptions(
            keys="str" if settings.recipe else None, recipe=settings.recipe,
            times=settings.expire_s is not None,
        )
        return simindex.open(settings.path, "c", options=options, wait_s=settings.wait_s)

    def _fitting(
        self, index: simindex.Index, agreed: simindex.Recipe | None
    ) -> simindex.Recipe:
        """The recipe of the texts, once they and the settings fit the index.

        `agreed` is the recipe of the components that use the index already.
        """
        settings, options = self.settings, index.options
        recipe = agreed or recipe_of_texts(index)
        if recipe is None:
            raise self._unfit("was made of fingerprints, without a recipe")
        if not takes_str_keys(index):
            raise self._unfit(
                "has keys of bytes" if options.keyed else "has ids in place of keys"
            )
        own = settings.recipe
        if own is not None:
            if agreed is None and awaits_recipe(index):
                self._check_width(own, options)
            else:
                self._check_same(own, recipe)
            recipe = own
        self._check(recipe, options.bits)
        return recipe

    def _unfit(self, why: str) -> InvalidOption:
        return InvalidOption(
            f"the index at {self.settings.path} cannot take the texts of a crawl by their keys: "
            f"it {why}",
            remedy=f"give {self.settings.path_setting} another path; the crawl creates an index "
            "there", option=self.settings.path_setting, found=self.settings.path,
        )

    def _check_width(self, own: simindex.Recipe, options: simindex.IndexOptions) -> None:
        """Refuses a recipe that an index without rows cannot take."""
        for name, found, expected in (
            ("bits", own.bits, options.bits),
            ("sketch_bits", own.sketch_bits, options.sketch_bits or own.sketch_bits),
        ):
            if found != expected:
                raise InvalidOption(
                    f"the setting {RECIPE} has {name}={found}, and the index at "
                    f"{self.settings.path} {name}={expected}",
                    remedy=f'give "{name}": {expected}, or {self.settings.path_setting} another '
                    "path", option=RECIPE, found=found, expected=expected,
                )

    def _check_same(self, own: simindex.Recipe, recipe: simindex.Recipe) -> None:
        path, path_setting = self.settings.path, self.settings.path_setting
        if own != recipe:
            raise InvalidOption(
                f"{RECIPE} is not the recipe of {path}: {contrast(own.differences(recipe))}",
                remedy=f"leave it out, or give {path_setting} another path", option=RECIPE,
            )
        if self.settings.recipe_h not in (None, recipe.h):
            raise InvalidOption(
                f"{RECIPE} has h={own.h}, and the recipe of {path} h={recipe.h}",
                remedy=f"leave h out, and give {DISTANCE}={own.h}", option=RECIPE, found=own.h,
                expected=recipe.h,
            )

    def _check(self, recipe: simindex.Recipe, bits: int) -> None:
        """Refuses a recipe that makes no fingerprints of texts, and a distance out of range."""
        try:
            recipe.batch([])
        except InvalidOption as error:
            if error.data["option"] == "tokenizer":
                raise of_setting(
                    RECIPE, error,
                    remedy='give "tokenizer" the function, in settings of Python',
                ) from error
            if self.settings.recipe is None:
                raise self._unfit(f"has a recipe for other uses, {error.what}") from error
            raise of_setting(
                RECIPE, error, remedy="give another weighting; or create the index yourself, with "
                "a recipe that is fitted, and leave this setting out",
            ) from error
        distance = self.settings.distance
        if distance is not None and not 0 <= distance <= bits:
            raise refused(DISTANCE, distance, f"a number of bits from 0 to {bits}")

    def _expire(self, index: simindex.Index) -> None:
        age_s = self.settings.expire_s
        if age_s is None:
            return
        try:
            expired = index.expire(older_than=age_s)
        except InvalidOption as error:
            raise of_setting(EXPIRE_S, error) from error
        index.commit()
        self.count("expired", expired)

    def close(self) -> None:
        """Commits, and closes the index with the last that uses it."""
        shared, self._shared = self._shared, None
        if shared is None:
            return
        with _OPENING:
            shared.users -= 1
            if not shared.users:
                del _OPEN[shared.place]
            try:
                shared.index.commit()
                if self._crawler.stats is not None:
                    self._crawler.stats.set_value("simindex/rows", len(shared.index))
            finally:
                if not shared.users:
                    shared.index.close()

    def nearest(self, text: str, key: str, prefix: str) -> simindex.Match | None:
        """An earlier text of another key within the radius; else the text is added.

        A text that cannot be added is counted, by the reason.
        """
        shared = self._shared
        assert shared is not None
        try:
            keys = as_keys([key], 1)
        except InvalidBatch:  # too long, or of half a surrogate pair
            self.count(f"{prefix}/invalid_key")
            return None
        document = self._recipe.batch([text], keys=keys)
        if not len(document):
            self.count(f"{prefix}/without_fingerprint")
            return None
        found = shared.index.seen_or_add(
            document, h=self.settings.distance, commit_s=self.settings.commit_s
        )
        if found is not None and found.key != key:
            self.count(f"{prefix}/near_duplicates")
            return found
        self.count(f"{prefix}/{'new' if found is None else 'fetched_again'}")
        return None

    def count(self, name: str, more: int = 1) -> None:
        """More of something in the statistics of the crawl."""
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(f"simindex/{name}", more)
