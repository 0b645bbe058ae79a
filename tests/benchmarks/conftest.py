"""The benchmarks are scripts beside each other: their tests import them from that folder, as the scripts do."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
