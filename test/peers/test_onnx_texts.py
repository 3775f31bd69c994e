"""ONNX models that take or give texts, and dictionaries of numbers; skipped without onnx."""

from __future__ import annotations

from typing import Any

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import ArgumentError, TraceError

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
helper, numpy_helper = pytest.importorskip("onnx.helper"), pytest.importorskip("onnx.numpy_helper")
pytestmark = pytest.mark.filterwarnings("ignore")

F32, I64, TEXT, BOOL = (getattr(onnx.TensorProto, name) for name in ("FLOAT", "INT64", "STRING", "BOOL"))
ML = "ai.onnx.ml"


def info(name: str, kind: int, *shape: Any) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def node(op: str, operands: str, results: str, domain: str = "", **attributes: Any) -> Any:
    return helper.make_node(op, operands.split(), results.split(), domain=domain, **attributes)


def function(nodes: list, inputs: list, outputs: list, weights: tuple = ()) -> Any:
    from profuse.executor.functions.onnx_files import model_function
    from profuse.executor.plans.plan_options import Options

    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    domains = [("", 20), (ML, 3), ("com.microsoft", 1)]
    versions = [helper.make_opsetid(domain, version) for domain, version in domains]
    model = helper.make_model(graph, opset_imports=versions, ir_version=9)
    return model_function(model, Options(background=False))


def texts(*values: Any) -> np.ndarray:
    return np.array(values, object)


def assert_texts(found: Any, wanted: Any) -> None:
    assert found.dtype == object and found.tolist() == wanted


def test_classes_may_be_texts_and_scores_dictionaries():
    attributes = {"coefficients": [1.0, 0, 0, 1, -1, -1], "intercepts": [0.0, 0, 0.5], "post_transform": "SOFTMAX"}
    outputs = [info("label", TEXT, "n")]
    scores = helper.make_sequence_type_proto(helper.make_map_type_proto(TEXT, helper.make_tensor_type_proto(F32, [])))
    f = function(
        [
            node("LinearClassifier", "x", "label p", ML, classlabels_strings=["a", "b", "c"], **attributes),
            node("ZipMap", "p", "scores", ML, classlabels_strings=["a", "b", "c"]),
        ],
        [info("x", F32, "n", 2)],
        [*outputs, helper.make_value_info("scores", scores)],
    )
    w, bias = np.array([[1, 0, -1], [0, 1, -1]], np.float32), np.array([0, 0, 0.5], np.float32)
    for rows in (3, 5, 3):
        x = np.random.default_rng(rows).normal(size=(rows, 2)).astype(np.float32)
        label, dictionaries = f(x)
        logits = x @ w + bias
        shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        assert_texts(label, ["abc"[k] for k in logits.argmax(1)])
        assert [[*row] for row in dictionaries] == [["a", "b", "c"]] * rows
        np.testing.assert_allclose([[*row.values()] for row in dictionaries], shares, rtol=1e-5)
    assert f.state().tier == "optimized" and f.state().counters["traces"] == 1


def test_texts_of_a_call_are_looked_up_compared_and_handed_on():
    nodes = [
        node("LabelEncoder", "t", "v", ML, keys_strings=["red", "blue"], values_floats=[1.5, 2.5], default_float=-1.0),
        node("OneHotEncoder", "t", "hot", ML, cats_strings=["blue", "red", "grey"]),
        node("Equal", "t u", "same"),
        node("Where", "same t word", "chosen"),
        node("Concat", "t u", "both", axis=0),
        node("LabelEncoder", "v", "back", ML, keys_floats=[1.5, -1.0], values_strings=["one", "none"]),
    ]
    outputs = [info("v", F32, "n"), info("hot", F32, "n", 3), info("same", BOOL, "n"), info("chosen", TEXT, "n")]
    outputs += [info("both", TEXT, "m"), info("back", TEXT, "n")]
    word = helper.make_tensor("word", TEXT, [1], [b"word"])
    f = function(nodes, [info("t", TEXT, "n"), info("u", TEXT, "n")], outputs, (word,))
    for t, u in (
        (texts("red", "green", "blue"), texts("red", "green", "x")),
        (np.array(["y", "red"]), texts("z", "y")),
        (texts("y", "blue"), texts("z", "")),
    ):
        v, hot, same, chosen, both, back = f(t, u=u)
        assert v.tolist() == [{"red": 1.5, "blue": 2.5}.get(w, -1.0) for w in t.tolist()]
        assert hot.tolist() == [[w == c for c in ("blue", "red", "grey")] for w in t.tolist()]
        assert same.tolist() == [a == b for a, b in zip(t.tolist(), u.tolist(), strict=True)]
        assert_texts(chosen, [a if a == b else "word" for a, b in zip(t.tolist(), u.tolist(), strict=True)])
        assert_texts(both, [*t.tolist(), *u.tolist()])
        assert_texts(back, [{1.5: "one", -1.0: "none"}.get(x, "_Unused") for x in v.tolist()])
    assert f.state().tier == "optimized" and f.state().counters["traces"] == 1


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        ({"keys_int64s": [5, -2, 7]}, {"values_int64s": [10, 20, 30], "default_int64": 4}),
        ({"keys_int64s": [5, -2, 10**12]}, {"values_floats": [0.5, 1.5, 2.5], "default_float": 4.0}),
        ({"keys_floats": [0.5, float("nan"), 7.0]}, {"values_floats": [1.0, 2.0, 3.0]}),
    ],
)
def test_tables_of_numbers(keys, values):
    x = np.array([5, -2, 7, 10**12, 0, -5], np.int64)
    kind = I64
    if "keys_floats" in keys:
        x, kind = np.array([0.5, np.nan, 7, 1], np.float32), F32
    gives = I64 if "values_int64s" in values else F32
    f = function(
        [node("LabelEncoder", "x", "y", ML, **keys, **values)], [info("x", kind, "n")], [info("y", gives, "n")]
    )
    (listed,) = keys.values()
    default = next((v for name, v in values.items() if name.startswith("default")), -0.0)
    table = next(v for name, v in values.items() if name.startswith("values"))
    for _ in range(3):
        found = f(x).tolist()
    same = [[k for k, key in enumerate(listed) if key == v or (key != key and v != v)] for v in x.tolist()]
    assert found == [table[at[0]] if at else default for at in same]


def counted_words() -> Any:
    nodes = [
        node("StringNormalizer", "t", "small", case_change_action="LOWER"),
        node("Tokenizer", "small", "words", "com.microsoft", mark=0, mincharnum=2, pad_value="#", tokenexp="[a-z]+"),
        node(
            "TfIdfVectorizer",
            "words",
            "y",
            max_gram_length=2,
            max_skip_count=0,
            min_gram_length=1,
            mode="TF",
            ngram_counts=[0, 3],
            ngram_indexes=[0, 2, 1, 3],
            pool_strings=["dog", "a", "fox", "the", "dog"],
        ),
    ]
    return function(nodes, [info("t", TEXT, "n")], [info("y", F32, "n", 4)])


def test_words_are_counted():
    f = counted_words()
    for documents, wanted in (
        (["The DOG, the dog", "fox a fox"], [[2, 0, 0, 2], [0, 2, 0, 0]]),
        (["", "dog", "the the dog"], [[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 1]]),
    ):
        for _ in range(2):
            np.testing.assert_array_equal(f(texts(*documents)), wanted)
    assert f.state().tier == "optimized"
    with pytest.raises(ArgumentError, match="needs an argument t"):
        f()


def test_texts_may_be_split_joined_and_matched():
    nodes = [
        node("StringConcat", "t u", "joined"),
        node("StringSplit", "joined", "parts counts", delimiter="-", maxsplit=1),
        node("RegexFullMatch", "t", "matches", pattern="[0-9]+"),
    ]
    outputs = [info("joined", TEXT, "n"), info("parts", TEXT, "n", "m"), info("counts", I64, "n")]
    f = function(nodes, [info("t", TEXT, "n"), info("u", TEXT, 1)], [*outputs, info("matches", BOOL, "n")])
    for _ in range(3):
        joined, parts, counts, matches = f(texts("1-2", "34"), texts("-x"))
    assert_texts(joined, ["1-2-x", "34-x"])
    assert_texts(parts, [["1", "2-x"], ["34", "x"]])
    assert counts.tolist() == [2, 2] and matches.tolist() == [False, True]


def looked_up() -> Any:
    table = {"keys_strings": ["a"], "values_int64s": [7]}
    return function([node("LabelEncoder", "t", "y", ML, **table)], [info("t", TEXT, "n")], [info("y", I64, "n")])


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (np.zeros(3, np.float32), "array of float32, and the model takes an array of texts"),
        (["a", "b"], "of type list, and the model takes an array of texts"),
        (texts("a", None), "holds None, and the model takes texts"),
        (texts(["a"]), r"has 2 axes, and the model takes 1"),
    ],
)
def test_arguments_that_are_no_texts_are_told(argument, words):
    with pytest.raises(pf.ProfuseError, match=words):
        looked_up()(argument)


def test_what_texts_cannot_do_is_told(tmp_path):
    f = looked_up()
    assert f(t=texts("a", "b")).tolist() == [7, -1]
    with pytest.raises(TraceError, match="called while tracing"):
        pf.jit(lambda x: f(x), unsupported="raise")(np.zeros(2))
    with pytest.raises(ArgumentError, match="no file of a function holds"):
        f.save(tmp_path / "f")
    sorting = function([node("Unique", "t", "y", sorted=1)], [info("t", TEXT, "n")], [info("y", TEXT, "m")])
    with pytest.raises(TraceError, match="Unique of texts is not supported"):
        sorting(texts("a"))
    number = function([node("Cast", "t", "y", to=F32)], [info("t", TEXT, "n")], [info("y", F32, "n")])
    with pytest.raises(TraceError, match="Cast of texts"):
        number(texts("1"))
    unlike = function([node("Identity", "t", "y")], [info("t", TEXT, "n")], [info("y", F32, "n")])
    with pytest.raises(TraceError, match="no text, and it is not so"):
        unlike(texts("1"))
