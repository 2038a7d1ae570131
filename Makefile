# make demo: install into .venv and open a sample.  make test: every static check and every test.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
    $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
SAMPLE ?= samples/transformer_h100_synthetic.pt.trace.json.gz
BIN := .venv/bin

.PHONY: demo test static clean
.DELETE_ON_ERROR:

demo: .venv/runs
	@$(BIN)/roofterm $(SAMPLE)

test: static
	$(BIN)/pytest -q -n auto --maxprocesses 8 --dist worksteal

static: .venv/tests $(if $(CI)$(ROOFTERM_TEST_TORCH),.venv/torch)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Two stamps, so that the demo does not wait for the tools of the tests.
.venv/runs: pyproject.toml | .venv/bin/python
	@echo "installing roofterm into .venv"
	@$(BIN)/pip install -q -e .
	@touch $@

.venv/tests: pyproject.toml | .venv/bin/python
	@echo "installing roofterm and the tools of its tests into .venv"
	@$(BIN)/pip install -q -e '.[dev]'
	@touch $@ .venv/runs

# Tests that measure with torch are skipped without it; it is large, so it is installed where they must run.
.venv/torch: | .venv/bin/python
	@$(BIN)/pip install -q torch==2.13.0
	@touch $@

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "roofterm needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "Python's venv module is missing: on Debian and Ubuntu, apt install python3-venv"; exit 1; }

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build dist
