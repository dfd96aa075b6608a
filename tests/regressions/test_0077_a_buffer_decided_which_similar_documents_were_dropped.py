"""By rank over all documents, those of one buffer were candidates of each other within a larger
radius than those of different buffers, so that `--buffer` changed what was kept."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from simindex.cli import program


def edited_pages(path: Path) -> Path:
    """Forty pages in six versions, each with some more words replaced."""
    random = Random(4)
    with path.open("w") as file:
        for page in range(40):
            words = [f"w{random.randrange(5000)}" for _ in range(60)]
            for version in range(6):
                record = {"id": f"{page}-{version}", "text": " ".join(words), "score": version}
                file.write(json.dumps(record) + "\n")
                for place in random.sample(range(60), 3):
                    words[place] = f"w{random.randrange(5000)}"
    return path


def kept(inputs: Path, *options: object) -> list[str]:
    """The documents that `dedup` prints."""
    call = ["dedup", str(inputs), "--quiet", "--ngram", "1", "--weighting", "sublinear", *options]
    done = CliRunner().invoke(program, [str(part) for part in call])
    assert done.exit_code == 0, done.stderr
    return [json.loads(line)["id"] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("recall", [1.0, 0.99, 0.5])
@pytest.mark.parametrize("keep", ["longest", "highest:score"])
@pytest.mark.parametrize("sketch_bits", [0, 64])
def test_what_is_kept_of_similar_documents_does_not_depend_on_the_buffer(
    tmp_path: Path, recall: float, keep: str, sketch_bits: int
) -> None:
    """Whether sketches or the radius decide, and whatever share of candidates is asked for."""
    inputs = edited_pages(tmp_path / "pages.jsonl")
    asked = ("--similarity", 0.8, "--recall", recall, "--sketch-bits", sketch_bits, "--keep", keep)
    at_once = kept(inputs, *asked)
    assert 40 <= len(at_once) < 200
    for buffer in (1, 7, 100):
        assert kept(inputs, *asked, "--buffer", buffer) == at_once
