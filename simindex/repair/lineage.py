"""Which segment files are the index, where no head says so for certain.

    inputs   a, b, c     |  a merge writes  |  m, which names a, b and c; a commit installs it,
    merged   m           |                  |  and then a, b and c are unlinked

After a crash m may exist next to some of a, b and c. Their rows are m's, except for those that were
deleted before the merge began, so one or the other is taken, never both.

Only names, numbers and what is damaged are looked at, so it is tested without a disk.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set

from simindex.values import dataclass


@dataclass(frozen=True, slots=True)
class Kin:
    """What a segment file says of itself."""

    name: str
    generation: int
    horizon: int
    whole: bool
    """Whether no damage reaches it."""
    inputs: tuple[str, ...] = ()
    """Names of the segments it was made of."""
    salvaged: bool = False
    """Whether it was made by a repair, of what was intact of a damaged one."""

    @property
    def merged(self) -> bool:
        """Whether it was made of others. Of rows just appended generation and horizon are equal."""
        return bool(self.inputs) or self.horizon < self.generation


def as_committed(live: Collection[str], files: Mapping[str, Kin]) -> set[str]:
    """The segments of a head, but where damage reaches them and what they were merged from or into
    is whole: then that."""
    taken = set(live)
    for kin in sorted(files.values(), key=lambda kin: kin.generation):
        if not kin.inputs or kin.salvaged:
            continue
        inputs = set(kin.inputs)
        if kin.name in taken:
            if not kin.whole and _all_whole(inputs, files):
                taken = taken - {kin.name} | inputs
        elif kin.whole and inputs <= taken and not _all_whole(inputs, files):
            taken = taken - inputs | {kin.name}
    return taken


def as_found(
    files: Mapping[str, Kin], live: Set[str] = frozenset(), generation: int = 0
) -> set[str]:
    """The segments of an index whose head is lost, or older than its files.

    Parameters
    ----------
    live, generation :
        The segments and the generation of the newest head there is, if there is one: what it does
        not name and was written before it was gone by then, except for a merge that was not
        installed yet.
    """
    taken = {
        name for name, kin in files.items()
        if name in live or kin.generation > generation or not live.isdisjoint(kin.inputs)
    }
    for kin in sorted(files.values(), key=lambda kin: (-kin.generation, -kin.horizon, kin.name)):
        if kin.name not in taken or not kin.inputs:
            continue
        if kin.salvaged and set(kin.inputs) <= files.keys():
            taken.discard(kin.name)  # a repair was interrupted: it is made again
            taken |= set(kin.inputs)
        elif kin.whole or not _all_whole(set(kin.inputs), files):
            taken -= ancestors(kin, files)
        else:
            taken.discard(kin.name)
            taken |= set(kin.inputs)
    return taken


def _all_whole(names: Collection[str], files: Mapping[str, Kin]) -> bool:
    return all(name in files and files[name].whole for name in names)


def ancestors(kin: Kin, files: Mapping[str, Kin]) -> set[str]:
    """All that a segment was made of, directly or not; but never itself."""
    found: set[str] = set()
    open_names = [*kin.inputs]
    while open_names:
        name = open_names.pop()
        if name not in found and name != kin.name:
            found.add(name)
            open_names += files[name].inputs if name in files else ()
    return found
