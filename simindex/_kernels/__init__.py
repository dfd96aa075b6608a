"""Native kernels: functions over arrays that release the GIL; most of them are pure.

`write_back` and `exchange` do I/O. `Verified` has state: it marks the bytes of a file that were
compared with their checksums. Kernels that read rows at random take it together with the rows.

Every function takes C-contiguous, little-endian numpy arrays whose shapes the caller has checked,
checks each offset that it follows, and returns counts and new arrays. `level` is the instruction
set: 0 portable, 1 AVX2, 2 AVX-512, 3 AVX-512 with VPOPCNTDQ. `LEVELS` names those that this
processor has. `level=-1` takes the widest, or the one that the environment variable `SIMINDEX_SIMD`
names.
"""

try:
    from . import _native
except ImportError as error:
    raise ImportError(
        f"the native kernels cannot be loaded ({error}). In a checkout they are built by "
        "`make demo`, `make test` or `pip install .`; start Python elsewhere, or with -P, so that "
        "the installed package is found"
    ) from error

LEVELS: tuple[str, ...] = tuple(_native.levels())
"""Names of the instruction sets this processor runs, from the narrowest to the widest."""

__all__ = ["LEVELS", "_native"]
