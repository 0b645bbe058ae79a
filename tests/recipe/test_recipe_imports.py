"""A check must answer at once: it imports nothing heavy."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHECK = """
import importlib, json, pkgutil, sys
import foresail.recipe
for module in pkgutil.walk_packages(foresail.recipe.__path__, "foresail.recipe."):
    importlib.import_module(module.name)
from foresail.recipe.reading.describe import describe
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.reading.preflight import preflight
recipe = load_recipe("recipes/rl-arithmetic.toml", ["run.name=demo"])
found = preflight(recipe)
assert "refused" in describe(found) and to_toml(recipe)
print(json.dumps(sorted(sys.modules)))
"""


def test_a_check_imports_nothing_heavy() -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", CHECK], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    modules = set(json.loads(done.stdout))
    assert "foresail.recipe.reading.preflight" in modules
    assert len(modules) < 400  # 260 take a third of a second
    heavy = {
        "torch",
        "numpy",
        "transformers",
        "tokenizers",
        "safetensors",
        "pyarrow",
        "sympy",
        "wandb",
        "reasoning_gym",
    }
    assert modules & heavy == set()
