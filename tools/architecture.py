"""Draws the folders of the package and their imports for docs/explanation/architecture.md.

    python tools/architecture.py            prints the drawing
    python tools/architecture.py --write    puts it into the page

The drawing is read from the source: one box a folder, and an arrow where a module of one imports
from another. An arrow that other arrows already lead along is left out, so that the picture shows
the order of the folders and not every import.
"""

from __future__ import annotations

import argparse
import ast
import sys
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "simindex"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
BEGIN, END = "<!-- drawn by tools/architecture.py -->\n", "<!-- end of the drawing -->\n"

WORDS = ("words", "errors, checks, options, arrays, values")
"""Modules at the top that serve all folders, drawn as one box."""


def folders() -> dict[str, str]:
    """Each folder below the package, and the first sentence that it says of itself."""
    found = {}
    for init in sorted(PACKAGE.rglob("__init__.py")):
        name = init.parent.relative_to(PACKAGE).as_posix()
        if name != ".":
            docstring = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
            found[name] = docstring.split("\n")[0].rstrip(".:")
    return found


def folder_of(path: Path) -> str:
    """The folder of a module; `simindex` for the package itself, `words` for most top modules."""
    inner = path.relative_to(PACKAGE)
    if len(inner.parts) > 1:
        return inner.parent.as_posix()
    return {"__init__": "simindex", "__main__": "cli"}.get(inner.stem, WORDS[0])


def imports(known: dict[str, str]) -> dict[str, set[str]]:
    """For each folder, the others that its modules import from."""
    below: dict[str, set[str]] = {name: set() for name in (*known, "simindex", WORDS[0])}
    for path in sorted(PACKAGE.rglob("*.py")):
        here = folder_of(path)
        gathers = path.name == "__init__.py"  # the modules of its folder
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                parts = name.split(".")
                if parts[0] != "simindex":
                    continue
                target = _target(parts[1:], known)
                if target != here and not (gathers and target.startswith(f"{here}/")):
                    below[here].add(target)
    return below


def _target(parts: list[str], known: dict[str, str]) -> str:
    for length in range(len(parts), 0, -1):
        if "/".join(parts[:length]) in known:
            return "/".join(parts[:length])
    module = PACKAGE / f"{parts[0]}.py" if parts else PACKAGE
    return WORDS[0] if module.is_file() else "simindex"


def reduced(below: dict[str, set[str]]) -> dict[str, set[str]]:
    """The arrows that no longer path of arrows implies."""
    reached: dict[str, set[str]] = {}
    for name in TopologicalSorter(below).static_order():
        reached[name] = set(below[name]).union(*(reached[other] for other in below[name]))
    return {
        name: {
            other for other in found
            if not any(other in reached[third] for third in found if third != other)
        }
        for name, found in below.items()
    }


def drawing() -> str:
    """The picture as a Mermaid flow chart."""
    known = folders()
    below = reduced(imports(known))
    lines = ["flowchart TB"]
    tops = [name for name in known if "/" not in name]
    lines.append('    simindex["<b>simindex</b><br/>the public names"]')
    for top in tops:
        within = [name for name in known if name.startswith(f"{top}/")]
        if within:
            lines.append(f"    subgraph group_{top} [{top}/]")
            lines += [f"        {_box(name)}" for name in (top, *within)]
            lines.append("    end")
        else:
            lines.append(f"    {_box(top)}")
    lines.append(f'    {WORDS[0]}["<b>{WORDS[1]}</b><br/>words, for all"]')
    for name, found in below.items():
        lines += [f"    {_node(name)} --> {_node(other)}" for other in sorted(found)]
    return "```mermaid\n" + "\n".join(lines) + "\n```\n"


def _node(name: str) -> str:
    return name.replace("/", "_")


def _box(name: str) -> str:
    return f'{_node(name)}["<b>{name}</b>"]'


def table() -> str:
    """What each folder is for, from the sentence in its `__init__.py`."""
    lines = ["| folder | what it is for |", "|---|---|"]
    lines += [f"| `{name}/` | {meaning} |" for name, meaning in folders().items()]
    return "\n".join(lines) + "\n"


def page_with_drawing(page: str) -> str:
    """The page, with the drawing between the marks made again."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{drawing()}\n{table()}\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help=f"put it into {PAGE.name}")
    if parser.parse_args().write:
        PAGE.write_text(page_with_drawing(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(drawing() + "\n" + table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
