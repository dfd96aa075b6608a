"""Functions of Python modules, as documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from simindex.cli.python_functions import EXCLUDED, LEAST_WORDS, functions_of, modules_below

LONG = "\n".join(f"    word_{n} = {n}" for n in range(LEAST_WORDS // 3 + 1))
INNER = LONG.replace("    ", "            ")
MODULE = f'''import os

def first(a, b):
{LONG}

def short():
    return 1

class Outer:
    """Not a function."""

    @staticmethod
    async def second():
{INNER}

    class Inner:
        def third(self):
{INNER}
'''


def written(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_functions_and_methods_have_names_lines_and_their_own_text(tmp_path: Path) -> None:
    module = written(tmp_path / "inner" / "some.py", MODULE)
    found = functions_of(module, tmp_path)
    lines = MODULE.split("\n")
    assert [function.name for function in found] == [
        "first", "Outer.second", "Outer.Inner.third",
    ]
    for function in found:
        assert function.module == "inner/some.py"
        assert function.key == f"inner/some.py:{function.line} {function.name}"
        assert f"def {function.name.split('.')[-1]}(" in lines[function.line - 1]
        own = function.text.split("\n")
        assert own == lines[function.line - 1 : function.line - 1 + len(own)]
        assert "word_0 =" in own[1]
        assert f"word_{LEAST_WORDS // 3} =" in own[-1]


def test_a_function_needs_the_least_number_of_words(tmp_path: Path) -> None:
    for words in (LEAST_WORDS - 1, LEAST_WORDS):
        text = "def f():  #" + " word" * (words - 4) + "\n    pass"
        assert len(text.split()) == words
        found = functions_of(written(tmp_path / "m.py", text), tmp_path)
        assert len(found) == (words == LEAST_WORDS)


def test_a_form_feed_does_not_move_the_lines(tmp_path: Path) -> None:
    module = written(tmp_path / "m.py", f"import os\n\f\ndef first():\n{LONG}\n")
    (function,) = functions_of(module, tmp_path)
    assert function.text == f"def first():\n{LONG}"


@pytest.mark.parametrize(
    "text", ["print 'two'\n", b"caf\xe9 = 1\n", b"x = 1\0\n", "# coding: nonsense\n", ""]
)
def test_a_file_that_is_no_module_has_no_functions(tmp_path: Path, text: str | bytes) -> None:
    assert functions_of(written(tmp_path / "m.py", text), tmp_path) == []
    assert functions_of(tmp_path / "missing.py", tmp_path) == []


def test_a_module_is_read_in_its_own_encoding(tmp_path: Path) -> None:
    text = f"# coding: latin-1\ndef first(é):\n{LONG}\n".encode("latin-1")
    (function,) = functions_of(written(tmp_path / "m.py", text), tmp_path)
    assert function.text.startswith("def first(é):")


def test_modules_are_found_in_order_and_not_in_excluded_folders(tmp_path: Path) -> None:
    for name in ("b.py", "a.py", "pack/c.py", "pack/notes.txt", "pack/deep/d.py"):
        written(tmp_path / name, "")
    for name in EXCLUDED:
        written(tmp_path / "pack" / name / "x.py", "")
    found = [path.relative_to(tmp_path).as_posix() for path in modules_below(tmp_path)]
    assert found == ["a.py", "b.py", "pack/c.py", "pack/deep/d.py"]
