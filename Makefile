# Two commands do everything: `make quickstart` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt

.PHONY: help install quickstart test test-ray lint clean

help:
	@echo "make quickstart  install, then train a small reasoner on this machine (minutes)"
	@echo "make install     create .venv and install the pinned set"
	@echo "make test        install what the tests need, then run them all"
	@echo "make test-ray    the tests that need Ray, in an environment of their own"
	@echo "make lint        ruff and mypy"
	@echo "make clean       remove .venv and caches; runs/ stays"

install: .venv/installed

quickstart: install
	$(BIN)/foresail quickstart

test: .venv/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadfile

# Processes of a cluster and their tests share one token, made for the occasion.
test-ray: build/ray/installed
	RAY_AUTH_MODE=token RAY_AUTH_TOKEN=$$(build/ray/bin/python -c 'import secrets; print(secrets.token_hex(32))') \
	OMP_NUM_THREADS=1 build/ray/bin/python -m pytest tests/rollout/test_ray_instance.py \
	tests/rollout/test_ray_nodes.py tests/train/test_ray_runs.py

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf .venv build/ray .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info

$(BIN)/python:
	$(PYTHON) -m venv .venv

build/ray/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv build/ray
	build/ray/bin/python -m pip install --disable-pip-version-check --constraint constraints.txt \
		--editable '.[ray]' pytest pytest-xdist hypothesis
	touch $@

.venv/installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[parquet,gguf]'
	touch $@

.venv/installed-dev: .venv/installed
	$(PIP) --editable '.[dev]'
	touch $@
