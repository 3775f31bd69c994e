"""Writes the tables of figures in pages, and the picture of kernels, from files of results.

A block of a page stands between two comments that name it. It is made of `bench/results/*.json` and
of nothing else, so that the same files give the same pages.

    python bench/kernels.py --dtypes f32 --sizes l3 --threads 1 all --again \\
        --peers numpy jax torch.compile --json bench/results/kernels.json
    python bench/gradients.py --threads 1 all --again --json bench/results/gradients.json
    python bench/gradients.py --bytes bench/results/gradients-bytes.json    # on any machine
    (cd bench && python -m programs --json results/programs.json)
    python bench/readme.py              # writes README.md, docs/measurements.md, docs/images
    python bench/readme.py --check      # writes nothing; fails where a page says something else
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradients import judged
from harness import blocks, plot, program_tables

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"


@dataclass(frozen=True)
class Block:
    """One table of a page.

    Attributes:
        page: below the root of the checkout.
        name: in the comments around it, and of the file of results.
        make: the results to the table.
    """

    page: str
    name: str
    make: Callable[[dict[str, Any]], str]

    def text(self, results: Path = RESULTS) -> str:
        """The table; raises FileNotFoundError without results."""
        return self.make(json.loads((results / f"{self.name}.json").read_text("utf-8")))

    def is_current(self, results: Path = RESULTS) -> bool:
        """True if the page has the table of the results."""
        page = (ROOT / self.page).read_text("utf-8")
        return blocks.place(page, self.name).group() == self.text(results)


BLOCKS = (
    Block("README.md", "kernels", blocks.kernels),
    Block(
        "docs/measurements.md", "gradients", lambda found: blocks.gradients(found, judged(list(found["rows"].values())))
    ),
    Block("docs/measurements.md", "gradients-bytes", blocks.gradient_bytes),
    Block("docs/measurements.md", "programs", program_tables.programs),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    given = parser.parse_args()
    if given.check:
        stale = [f"{b.page}: {b.name}" for b in BLOCKS if not b.is_current()]
        sys.exit("\n".join(f"{s} is not what the results give" for s in stale) or None)
    for block in BLOCKS:
        changed = blocks.write(ROOT / block.page, block.name, block.text())
        print(f"{block.page}: {block.name} {'is new' if changed else 'is as it was'}")
    rows = list(json.loads((RESULTS / "kernels.json").read_text("utf-8"))["rows"].values())
    for cores in sorted({row["threads"] for row in rows}):
        many = "" if cores == 1 else "-all"
        path = ROOT / "docs" / "images" / f"kernels{many}.svg"
        plot.draw(rows, str(path), cores)
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
