"""Where an index is: its directory as a caller names it, and what is found there.

    FORMAT    names the uuid; read again once the catalog is open, since another index may take the
              place in between
    catalog   an environment that the process shares, and gives back by `Lease.release`
    described options and recipe, which every snapshot of the index is read by
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from contextlib import suppress
from pathlib import Path

from simindex._kernels import _native
from simindex.errors import CorruptFile, IndexNotFound, InvalidOption, UnsupportedStorage
from simindex.options import IndexOptions
from simindex.simhash.recipe import Recipe
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.leases import Lease, acquire
from simindex.storage.catalog.records import stored_options
from simindex.storage.files.checksums import VERIFY
from simindex.storage.files.format import read_format
from simindex.storage.files.refusals import refusal
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables import deletion_file
from simindex.storage.tables.record import NAME
from simindex.values import dataclass

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""With which the address of a file of another system begins, as in ``s3://bucket``."""

NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "ceph", "lustre", "afs", "gpfs",
     "afpfs", "webdav"}
)


def checked_call(
    path: str | os.PathLike[str], mode: object, options: object, verify: object = "lazy"
) -> Path:
    """The directory, once path and options are of their kinds; see `simindex.open`."""
    if not isinstance(mode, str) or mode not in ("r", "w", "c", "n"):
        raise InvalidOption(
            f"mode={mode!r} is unknown", remedy="give r, w, c or n", option="mode", found=mode
        )
    if not isinstance(verify, str) or verify not in VERIFY:
        raise InvalidOption(
            f"verify={verify!r} is unknown", remedy="give lazy, open or never",
            option="verify", found=verify, expected=VERIFY,
        )
    if options is not None and not isinstance(options, IndexOptions):
        raise InvalidOption(
            f"options={options!r} is not an IndexOptions",
            remedy="give simindex.IndexOptions(...)", option="options", found=options,
        )
    try:
        directory = Path(path)
    except TypeError as error:
        raise InvalidOption(
            f"{path!r} is not a path: {error}", option="path", found=path
        ) from error
    if "\0" in str(directory):
        raise InvalidOption(
            f"{path!r} is not a path: it has a null byte", option="path", found=path
        )
    first = next(iter(directory.parts), "")
    if _SCHEME.fullmatch(first) and not Path(first).exists():
        raise InvalidOption(
            f"{os.fspath(path)} is an address, and an index is a folder on a local disk",
            remedy="name a path of this machine", option="path", found=os.fspath(path),
        )
    try:
        _check_way(directory, create=mode in ("c", "n"))
    except IndexNotFound:
        raise
    except OSError as error:
        if error.errno not in (errno.ENAMETOOLONG, errno.EINVAL):
            raise refusal(error, directory) from error
        raise InvalidOption(
            f"{path!r} is not a path: {error}", option="path", found=path
        ) from error
    return directory


def _check_way(directory: Path, *, create: bool) -> None:
    """Refuses a path that nothing can be at, or that leads to no directory, with IndexNotFound.

    What is in the way of one that is to be made `creation` refuses.
    """
    try:
        kind = directory.stat().st_mode
    except FileNotFoundError as error:
        if create or not directory.is_symlink():
            return
        raise IndexNotFound(
            f"{directory} is a symbolic link to nothing, so there is no index",
            remedy="correct the link, or name another path", path=str(directory),
        ) from error
    except NotADirectoryError as error:
        on_the_way = reversed(directory.parents)
        file = next((one for one in on_the_way if one.exists() and not one.is_dir()), directory)
        raise IndexNotFound(
            f"{file} is not a folder, so there can be no index at {directory}",
            remedy="name another path", path=str(directory), found=str(file),
        ) from error
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise IndexNotFound(
            f"there can be no index at {directory}, because its symbolic links form a loop",
            remedy="correct the links, or name another path", path=str(directory),
        ) from error
    if not create and not stat.S_ISDIR(kind):
        raise IndexNotFound(
            f"{directory} is not a folder, so it is not an index", remedy="name another path",
            path=str(directory),
        )


def check_storage(directory: Path, *, allow_remote: bool) -> None:
    """Refuses machines and file systems on which locks and maps cannot be trusted."""
    if sys.byteorder != "little" or sys.maxsize < 1 << 40:
        raise UnsupportedStorage("simindex needs a 64-bit little-endian machine")
    kind = file_system_kind(directory)
    if kind in NETWORK_FILE_SYSTEMS and not allow_remote:
        raise UnsupportedStorage(
            f"{directory} is on a {kind} file system, where locks and memory maps are not reliable",
            remedy="keep the index on a local disk, or set allow_remote and use one machine",
            path=str(directory), found=kind,
        )


def file_system_kind(path: Path) -> str:
    """The file system's name as the kernel gives it, or "" where that is unknown."""
    try:
        device = path.stat().st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
        for line in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
            fields, _, rest = line.partition(" - ")
            if fields.split()[2] == wanted:
                return rest.split()[0]
    except (OSError, IndexError):
        pass
    return _native.file_system(os.fsencode(path))


def leased(path: Path, *, writable: bool) -> tuple[bytes, Lease]:
    """The uuid and the catalog of the index at a path, which others may put another in place of.

    Raises IndexNotFound or CorruptFile, and what the operating system refuses.
    """
    while True:
        uuid = read_format(path, writable=writable)
        for name in ("catalog", "segments"):
            part = path / name
            if part.is_symlink() or (part.exists() and not part.is_dir()):
                raise CorruptFile(f"{part} is not a folder", path=str(part))
        lease = acquire(path / "catalog", writable=writable)
        try:
            if read_format(path, writable=writable) == uuid:
                return uuid, lease
        except BaseException:
            lease.release()
            raise
        lease.release()  # opened, perhaps, while another index took its place


@dataclass(frozen=True, slots=True)
class Described:
    """What a catalog says of the whole index."""

    options: IndexOptions
    options_checksum: int | None
    """Changes with the options; None if the catalog has no record of them."""
    recipe: Recipe | None


def described(catalog: Catalog, *, index: bytes) -> Described:
    """The options and the recipe in a catalog; CorruptFile if it is another index's."""
    with catalog.reading() as reading:
        _, head = reading.head()
        named = reading.value(head, "index")
        stored = reading.value(head, "options")
        checksum = head.values.get("options")
        recipe = reading.value(head, "recipe")
    if named not in (None, index):
        raise CorruptFile(
            f"{catalog.path} or FORMAT belongs to another index",
            remedy="restore the right file from a backup; `simindex repair` shows what can be "
            "recovered without it",
            path=str(catalog.path),
        )
    return Described(
        stored_options(stored), checksum, Recipe.from_bytes(recipe) if recipe is not None else None
    )


def check_age(path: Path, catalog: Catalog, snapshot: Snapshot) -> None:
    """Refuses a catalog that is older than the files next to it, as a writer does."""
    latest = f"{snapshot.head.generation + 2:016x}"
    newer: list[str] = []
    with suppress(OSError), os.scandir(path / "segments") as entries:
        newer = [entry.name for entry in entries if entry.name >= latest]
    ours = [n for n in newer if NAME.fullmatch(n) or deletion_file.NAME.fullmatch(n)]
    # While others commit, files of later commits are there.
    if ours and catalog.head_value() == snapshot.value:
        raise catalog_is_older(path / "segments" / min(ours))


def catalog_is_older(file: Path) -> CorruptFile:
    """The error where a file is there that only a later commit than the catalog's can name."""
    return CorruptFile(
        f"{file} is newer than the catalog: an older catalog/data.mdb was copied over the newer "
        "one",
        remedy="restore the newer one; if it is lost, `simindex repair` makes one from the "
        "segment files",
        path=str(file),
    )
