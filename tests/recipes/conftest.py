"""Scripts of recipes/small import each other from their folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "recipes/small"))
