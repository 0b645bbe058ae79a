# Two commands do everything: `make quickstart` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt

.PHONY: help install quickstart test lint clean

help:
	@echo "make quickstart  install, then train a small reasoner on this machine (minutes)"
	@echo "make install     create .venv and install the pinned set"
	@echo "make test        install what the tests need, then run them all"
	@echo "make lint        ruff and mypy"
	@echo "make clean       remove .venv and caches; runs/ stays"

install: .venv/installed

quickstart: install
	$(BIN)/foresail quickstart

test: .venv/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadfile

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info

$(BIN)/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[parquet,gguf]'
	touch $@

.venv/installed-dev: .venv/installed
	$(PIP) --editable '.[dev]'
	touch $@
