"""The Python targets by name."""

from __future__ import annotations

from fuzzing import arguments, catalogs, documents, envelopes, kernels, readers, values, wrecks
from fuzzing.target import Target

TARGETS: dict[str, Target] = {
    "segments": envelopes.TARGET,
    "catalog": catalogs.TARGET,
    "values": values.TARGET,
    "documents": documents.TARGET,
    **readers.TARGETS,
    "wrecks": wrecks.TARGET,
    "arguments": arguments.TARGET,
    "kernels": kernels.TARGET,
}
