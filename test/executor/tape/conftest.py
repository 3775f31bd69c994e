"""Functions and cases of the tests of gradients serve here as well."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "dialect" / "gradients")]
