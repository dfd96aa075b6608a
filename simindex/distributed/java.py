"""Whether this machine has the Java that Spark needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from simindex.errors import MissingExtra

LEAST_JAVA = 17

ASKED_S = 60


def require_java() -> None:
    """Raises MissingExtra unless Spark can start Java: that of JAVA_HOME, or `java`."""
    why = _missing()
    if why is not None:
        raise MissingExtra(
            f"Spark needs Java {LEAST_JAVA} or newer: {why}",
            remedy=f"install it, such as with `apt-get install openjdk-{LEAST_JAVA}-jre-headless`, "
            "and let JAVA_HOME name its folder if there are several",
            extra="spark",
        )


def _missing() -> str | None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java") if not home else str(Path(home) / "bin" / "java")
    if java is None:
        return "there is no `java`, and JAVA_HOME is not set"
    try:
        asked = subprocess.run(
            [java, "-version"], capture_output=True, text=True, errors="replace", check=False,
            timeout=ASKED_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{java} does not run ({error})"
    told = asked.stderr + asked.stdout
    found = re.search(r'version "(\d+)', told)
    if asked.returncode or found is None:
        return f"{java} -version does not say which it is ({told.strip()[:80]!r})"
    version = int(found[1])
    return None if version >= LEAST_JAVA else f"{java} is of version {version}"
