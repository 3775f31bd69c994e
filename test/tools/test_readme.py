"""Tables of figures in pages are what `bench/readme.py` makes of the committed results."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import gradients
import readme
from harness import blocks

BENCH = Path(__file__).parents[2] / "bench"


def results(name: str) -> dict:
    return json.loads((BENCH / "results" / f"{name}.json").read_text("utf-8"))


@pytest.mark.parametrize("block", readme.BLOCKS, ids=lambda b: b.name)
def test_pages_have_the_tables_of_the_results(block):
    page = (readme.ROOT / block.page).read_text("utf-8")
    assert blocks.place(page, block.name).group() == block.text(), "run bench/readme.py"


def test_a_figure_that_changes_changes_the_table():
    found = results("kernels")
    before = blocks.kernels(found)
    slow = copy.deepcopy(found)
    row = next(r for r in slow["rows"].values() if r["kernel"] == "softmax" and r["threads"] == 1)
    row["ratios"]["jax"] = [0.01, 0.012, 0.0125]
    after = blocks.kernels(slow)
    # It is now the worst of one core, the last line of that table, and bold.
    table = after.split("best and worst on 1 core")[1].split("\n\n")[0]
    assert table.splitlines()[-1].startswith("| `softmax` |")
    assert "**0.01**" in table.splitlines()[-1]
    assert "`softmax`" not in before.split("best and worst on 1 core")[1].split("\n\n")[0]

    def faster(text: str) -> int:
        line = next(ln for ln in text.splitlines() if "that one is faster" in ln)
        return int(line.split("|")[2].split(" of ")[0])

    assert faster(after) == faster(before) + 1


def test_worst_rows_and_refusals_are_shown():
    found = results("kernels")
    text = blocks.kernels(found)
    for cores in {row["threads"] for row in found["rows"].values()}:
        rows = [r for r in found["rows"].values() if r["threads"] == cores and r.get("ratios")]
        slowest = min(rows, key=lambda r: min(q[1] for s, q in r["ratios"].items() if "ours" not in s))
        assert f"| `{slowest['kernel']}` |" in text
    for row in found["rows"].values():
        if "ours" in row["skipped"]:
            assert f"`{row['kernel']}`" in text.partition("Profuse refuses")[2]


def test_results_name_no_folder_of_the_machine():
    for name in ("kernels", "gradients"):
        text = (BENCH / "results" / f"{name}.json").read_text("utf-8")
        assert "/home/" not in text and "/tmp/" not in text and str(readme.ROOT) not in text


def test_a_page_without_a_place_is_an_error(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A page\n", "utf-8")
    with pytest.raises(LookupError, match="no place for kernels"):
        blocks.write(page, "kernels", "text")
    begin, end = blocks.marks("kernels")
    page.write_text(f"before\n{begin}\n\n{end}\nafter\n", "utf-8")
    assert blocks.write(page, "kernels", "one\n\ntwo")
    assert not blocks.write(page, "kernels", "one\n\ntwo")
    assert page.read_text("utf-8") == f"before\n{begin}\none\n\ntwo\n{end}\nafter\n"


def test_check_tells_a_stale_page(tmp_path, monkeypatch):
    done = subprocess.run(
        [sys.executable, str(BENCH / "readme.py"), "--check"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    stale = results("gradients")
    next(iter(stale["rows"].values()))["ratios"]["jax"] = [7.1, 7.2, 7.3]
    (tmp_path / "gradients.json").write_text(json.dumps(stale), "utf-8")
    (block,) = [b for b in readme.BLOCKS if b.name == "gradients"]
    assert block.is_current() and not block.is_current(tmp_path)


def test_aims_are_judged_by_medians():
    def row(**ratios: list[float]) -> dict:
        given = {name.replace("_", "-"): q for name, q in ratios.items()}
        return {"kernel": "gelu_gradient", "dtype": "f32", "size": "1024x1024", "threads": 1, "ratios": given}

    fast = list(gradients.judged([row(by_hand=[0.97, 0.98, 1.0], jax=[2.0, 2.5, 2.6])]))
    assert [line.rsplit(", ", 1)[1] for line in fast] == ["met", "met"]
    assert "ours / by-hand at most 1.05: 1.02 [1.00-1.03]" in fast[0]
    slow = list(gradients.judged([row(by_hand=[0.8, 0.9, 1.0], jax=[1.9, 1.99, 2.6])]))
    assert [line.rsplit(", ", 1)[1] for line in slow] == ["MISSED", "MISSED"]
    assert [ln.rsplit(": ", 1)[1] for ln in gradients.judged([row()])] == ["not measured"] * 2
