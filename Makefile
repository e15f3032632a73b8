# Two commands on a machine that has only Python >= 3.11 (with venv) and make, no compiler: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_OPTIONS := --quiet --disable-pip-version-check -c constraints.txt
export RAY_USAGE_STATS_ENABLED = 0
export MLFLOW_DISABLE_TELEMETRY = true
# Images switch bytecode off: each of the many processes of a test would then compile this program, and pytest its tests.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test unit install lint types docs lessons screenshots chaos codes fresh bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo   install, and find the best model for each of 40 taxi zones"
	@echo "make test   install and run the tests; the slow ones: make chaos, make fresh"
	@echo "make unit   the tests of every minute: no Ray, no server, under a minute"
	@echo "make docs   a site of docs/ in docs/_build/html"
	@echo "make lessons   run examples/*.ipynb and store what they show"
	@echo "make screenshots   make docs/images anew, with an installed Chromium"
	@echo "make lint types chaos codes fresh bench clean"

# hpbandster alone: of what it asks for, netifaces would have to be compiled and is never loaded; dev has the rest.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PIP_OPTIONS) -e '.[dev]'
	$(BIN)/python -m pip install $(PIP_OPTIONS) --no-deps hpbandster
	@touch $@

install: $(VENV)/.installed

demo: install
	$(BIN)/tuning demo demo; code=$$?; test $$code -eq 3   # 3: some customers have no model, as they should

# The tests of Ray mostly wait for its processes, so they run beside the rest; what they print comes after it. Ray would run
# its workers at niceness 15, and they would wait for the rest.
test: install
	@log=$$(mktemp); trap 'rm -f $$log' EXIT; \
	RAY_worker_niceness=0 $(BIN)/python -m pytest -m "not slow and ray" > $$log 2>&1 & ray=$$!; \
	$(BIN)/python -m pytest -m "not slow and not ray" -n 2 --dist worksteal; rest=$$?; \
	wait $$ray; ray=$$?; cat $$log; test $$rest -eq 0 && test $$ray -eq 0

unit: install
	$(BIN)/python -m pytest tests/unit -m "not long and not slow" -n 2 --most-seconds 2

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: install
	$(BIN)/mypy

# A warning is an error, as in the tests.
docs: install
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html

lessons: install
	$(BIN)/python tests/helpers/lessons.py

screenshots: install
	$(BIN)/python tests/helpers/screenshots.py

chaos: install
	$(BIN)/python -m pytest -m "chaos or slow" --ignore=tests/fresh -rP

# Environments built anew from a package index: no compiler, the wheel alone, served models, PyTorch. A quarter of an hour.
fresh: install
	$(BIN)/python -m pytest tests/fresh -rP

# The tests with each sentence of the catalogue replaced by its code: what a run decides hangs on no words. Left out are the
# tests that assert words, which the file names.
codes: install
	PYTHONPATH=tests/helpers/codes_for_words $(BIN)/python -m pytest tests/unit tests/runs tests/service -m "not slow and not ray" \
	-n 2 --dist worksteal @tests/helpers/codes_for_words/tests_of_words.txt

# Says at its beginning how long it will take: within ninety minutes on two quiet cores.
bench: install
	$(BIN)/python -m benchmarks.throughput --report benchmarks/out
	$(BIN)/python -m benchmarks.search_cost --seconds 5 --seeds 5
	$(BIN)/python -m benchmarks.mlflow_cost

clean:
	rm -rf $(VENV) demo runs benchmarks/out docs/_build docs/lessons
