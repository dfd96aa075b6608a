# make demo    a virtual environment, the package, and the main job on real input
# make check   lint, types, layers, and the quick tests of modules and contracts
# make test    all tests, as many at once as there are cores
#              (worksteal keeps a file on one core, so that what its tests share is made once)
# make test-distributed    the tests of shards on Ray and Spark, where they can be installed
# make test-browser    the tests of pages, in Chromium where it is installed
# make lint    ruff, mypy --strict
# make torture, make soak, make fuzz    the long trials of docs/explanation/reliability.md, an hour or more
# make sanitize    the tests that reach kernels, under sanitizers of gcc: an hour or more
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# Rebuild when anything that is compiled or packaged has changed.
SOURCES := pyproject.toml CMakeLists.txt $(shell find simindex -name '*.py' -o -name '*.pyi' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.inc')

# What `make check` leaves to the others: trials, old bugs, the tools, what needs Ray or Spark, and
# tests that are marked.
FAST := -m "not slow" --ignore tests/faults --ignore tests/regressions --ignore tests/tools \
  --ignore tests/distributed/ray --ignore tests/distributed/test_spark.py

.PHONY: demo check test test-distributed test-browser lint torture soak fuzz sanitize clean

demo: $(VENV)/.installed
	$(BIN)/simindex demo

check: lint
	$(BIN)/pytest -n auto --dist worksteal $(FAST)

test: $(VENV)/.test
	$(BIN)/pytest -n auto --dist worksteal

# Only what the extras need: another installation would make the wheel again. Tests of what cannot be
# installed are skipped, and say why. The other tests of shards are in `make test`.
test-distributed: $(VENV)/.test
	@for extra in ray spark; do \
	  $(BIN)/pip install --quiet --disable-pip-version-check $$($(BIN)/python -c 'import sys, tomllib; \
	  extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	  print(*extras.get(sys.argv[1], ["pip"]))' $$extra) || echo "$$extra is not installed"; \
	done
	$(BIN)/pytest -rs tests/distributed/ray tests/distributed/test_spark.py

# The tests of pages in Chromium; skipped, with the reason, where there is none.
test-browser: $(VENV)/.test
	@$(BIN)/pip install --quiet --disable-pip-version-check $$($(BIN)/python -c 'import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["browser"])') \
	|| echo "playwright is not installed"
	$(BIN)/pytest -rs tests/reporting/test_html_page_browser.py

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/mypy

torture: $(VENV)/.test
	$(BIN)/python tools/torture.py all

soak: $(VENV)/.test
	$(BIN)/python tools/soak.py

fuzz: $(VENV)/.test
	$(BIN)/pip install --quiet --disable-pip-version-check '.[fuzz]'
	$(BIN)/python tools/fuzz.py

sanitize: $(VENV)/.test
	$(BIN)/python tools/sanitize.py

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/pip $(SOURCES)
	$(BIN)/pip install --quiet --disable-pip-version-check .
	touch $@

# What the tests and checks need is installed while the package is compiled. One installation has all
# tools: each one more would compile it again.
$(VENV)/.test: $(VENV)/bin/pip $(SOURCES)
	rm -rf $(VENV)/wheel
	$(BIN)/python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	extras = project["optional-dependencies"]; \
	print(*project["dependencies"], *extras["test"], *extras["lint"], sep="\n")' > $(VENV)/tools.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -r $(VENV)/tools.txt & tools=$$!; \
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(VENV)/wheel . \
	  -C cmake.define.SIMINDEX_WARNINGS_ARE_ERRORS=ON && wait $$tools && \
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall $(VENV)/wheel/*.whl
	touch $(VENV)/.installed $@

clean:
	rm -rf build dist $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
