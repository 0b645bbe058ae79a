"""Benchmarks import each other from their folders by plain names, and so do their tests."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path[:0] = [str(folder) for folder in BENCHMARKS.iterdir() if any(folder.glob("*.py"))]
