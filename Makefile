# Everything runs in .venv, which is made from constraints.txt; nothing is installed by hand.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help setup run test check bench docs

help:
	@echo "make run      a record from the sample logs, read in three ways (ONCE=1: and stop)"
	@echo "make test     the checks and the whole suite, on SQLite and PostgreSQL"
	@echo "make check    ruff, mypy, import contract"
	@echo "make bench    print every figure"
	@echo "make docs     write docs/schema.md and docs/settings.md anew"

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

run: $(READY)
	@$(BIN)/steno tour samples --data data $(if $(ONCE),--once)

test: check
	$(BIN)/pytest -n 2

check: $(READY)
	$(BIN)/ruff check --no-cache .  # where an import belongs depends on other files
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python -m bench

docs: $(READY)
	$(BIN)/python docs/generate.py
