"""A picture of the ratios, for readers of the README; needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .tables import COMPILERS, worst

_COLOURS = {"jax": "#1f77b4", "torch.compile": "#d95f02", "numpy": "#888888"}


def draw(rows: Sequence[dict[str, Any]], path: str, threads: int, dtype: str = "f32") -> None:
    """One panel a size: kernels downwards, ratios to the right with quartiles, as SVG.

    Raises ImportError without matplotlib.
    """
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
    matplotlib.rcParams["svg.hashsalt"] = "bench"  # equal figures make equal files
    from matplotlib import pyplot

    kept = [r for r in rows if r["dtype"] == dtype and r["threads"] == threads and r.get("ratios")]
    sizes = list(dict.fromkeys(r["size"] for r in kept))
    if not sizes:
        return
    order = [r["kernel"] for r in sorted(kept, key=worst)]
    names = list(dict.fromkeys(order))[::-1]
    height = 0.9 + 0.17 * len(names)
    figure, axes = pyplot.subplots(1, len(sizes), sharey=True, figsize=(2.6 + 2.8 * len(sizes), height), squeeze=False)
    for axis, size in zip(axes[0], sizes, strict=True):
        for row in (r for r in kept if r["size"] == size):
            y = names.index(row["kernel"])
            for system in ("numpy", *COMPILERS):
                if system in row["ratios"]:
                    low, middle, high = row["ratios"][system]
                    axis.plot([low, high], [y, y], color=_COLOURS[system], linewidth=1)
                    axis.plot(middle, y, "o", color=_COLOURS[system], markersize=3.5)
        axis.axvline(1.0, color="black", linewidth=0.8)
        axis.set_xscale("log", base=2)
        axis.set_title(size, fontsize=9)
        axis.grid(axis="x", alpha=0.3)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.tick_params(labelsize=7)
    axes[0][0].set_yticks(range(len(names)), names)
    axes[0][0].set_ylim(-0.7, len(names) - 0.3)
    handles = [pyplot.Line2D([], [], color=c, marker="o", markersize=4, label=s) for s, c in _COLOURS.items()]
    figure.legend(handles=handles, loc="lower right", ncols=3, fontsize=8, frameon=False)
    plural = "s" if threads > 1 else ""
    figure.suptitle(
        f"time of a peer / time of Profuse, {dtype}, {threads} thread{plural}; right of 1 Profuse is faster", fontsize=9
    )
    figure.tight_layout(rect=(0, 0.3 / height, 1, 1))
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)
