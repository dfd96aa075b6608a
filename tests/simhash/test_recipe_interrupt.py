"""Ctrl-C ends a call into the kernels soon, whatever it does and on however many threads.

A document of very many hashes, or of very many distinct features, once could not be interrupted.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

SOON_S = 10.0
"""Far above the 50 ms between two looks, far below the minutes that each call would take."""

BEGINNING = """
import sys
import numpy as np
from simindex import Recipe

threads = int(sys.argv[1])
wide = dict(bits=4096, projection="gaussian", ngram=3)
text = " ".join(f"w{i * i % 3001}" for i in range(3000))
many = [text] * 60_000
long = text * 1000
hashes = np.arange(6_000_000, dtype=np.uint64)
one = [0, len(hashes)]

def lines(text):
    return text.split()

def run():
    CALL

print("begun", flush=True)
try:
    run()
except KeyboardInterrupt:
    print("interrupted", flush=True)
else:
    print("done", flush=True)
"""

CALLS = {
    "many texts": "Recipe(weighting='tf', **wide).batch(many, threads=threads)",
    "one long text": "Recipe(weighting='tf', **wide).batch([long] * threads, threads=threads)",
    "many distinct features": (
        'Recipe(weighting="sublinear", **wide)'
        ".batch_features(hashes, one, threads=threads)"
    ),
    "many hashes": "Recipe(weighting='tf', **wide).batch_features(hashes, one, threads=threads)",
    "given weights": (
        'Recipe(weighting="given", **wide)'
        ".batch_features(hashes, one, np.ones(len(hashes)), threads=threads)"
    ),
    "words from Python": (
        "Recipe(weighting='tf', stop_words=['w1'], **wide).batch([long], threads=threads)"
    ),
    "document frequencies": (
        "Recipe(ngram=(1, 2, 3, 4, 5)).document_frequencies(many * 30, threads=threads)"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "threads"),
    [(call, 1) for call in CALLS]
    + [(call, 2) for call in ("many texts", "one long text", "document frequencies")],
)
def test_an_interrupt_ends_a_call_soon(call, threads):
    with subprocess.Popen(
        [sys.executable, "-P", "-c", BEGINNING.replace("CALL", CALLS[call]), str(threads)],
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        late = threading.Timer(60, process.kill)
        late.start()
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            time.sleep(0.4)  # for the kernels to begin; too short a time only tests less
            begun = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
            assert time.monotonic() - begun < SOON_S
        finally:
            late.cancel()
            process.kill()
