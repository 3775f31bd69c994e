"""Models of packages, and models made here, against onnxruntime; each part is skipped where its package is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE
from onnx_models import chirps, drawn_text, file_bytes, first_state, folder, session, speech_inputs

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
helper, numpy_helper = pytest.importorskip("onnx.helper"), pytest.importorskip("onnx.numpy_helper")
pytestmark = pytest.mark.filterwarnings("ignore")
_TOLERANCE = 1e-4
_CHUNKS = 200 if EVERY_CASE else 4
SPEECH = sorted(folder("silero_vad").glob("data/*.onnx"))
TEXT = folder("rapidocr_onnxruntime") / "models"
FILES = folder("magika") / "models/standard_v3_3/model.onnx"


def all_of(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def assert_close(found: Any, wanted: Any, tolerance: float) -> None:
    for a, b in zip(all_of(found), wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


@pytest.mark.parametrize("path", SPEECH if EVERY_CASE else SPEECH[1:2], ids=lambda path: path.stem)
def test_speech_is_detected_over_many_chunks(path):
    pytest.importorskip("onnxruntime")
    peer, f = session(path), pf.load(path, background=False)
    names = [x.name for x in peer.get_inputs()]
    ours, theirs = first_state(names), first_state(names)
    for chunk in chirps(_CHUNKS):
        wanted = peer.run(None, dict(zip(names, speech_inputs(names, chunk, theirs), strict=True)))
        found = f(*speech_inputs(names, chunk, ours))
        # Cells of the state grow beyond 100, where neighbours in single precision are 8e-6 apart.
        largest = max(float(np.abs(x).max()) for x in wanted)
        assert_close(found[:1], wanted[:1], _TOLERANCE)
        assert_close(found[1:], wanted[1:], max(_TOLERANCE, 2e-6 * largest))
        theirs, ours = dict(zip(theirs, wanted[1:], strict=True)), dict(zip(ours, found[1:], strict=True))
    counters = f.state().counters
    assert f.state().tier == "optimized"
    assert (counters["traces"], counters["compiles"], counters.get("python_calls", 0)) == (1, 1, 0)


def run_beside(path: Path, *inputs: np.ndarray) -> None:
    pytest.importorskip("onnxruntime")
    peer, f = session(path), pf.load(path, background=False)
    for x in inputs:
        wanted = peer.run(None, {peer.get_inputs()[0].name: x})
        for _ in range(2):
            assert_close(f(x), wanted, _TOLERANCE)
    assert f.state().tier == "optimized"


@pytest.mark.skipif(not (EVERY_CASE and FILES.exists()), reason="a case of EVERY_CASE, where magika is installed")
def test_types_of_files_are_told():
    run_beside(FILES, *(file_bytes(path) for path in (Path(__file__), Path(np.__file__))))


@pytest.mark.skipif(not (EVERY_CASE and TEXT.exists()), reason="a case of EVERY_CASE, where rapidocr is installed")
@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("ch_ppocr_mobile_v2.0_cls_infer", (48, 192)),
        ("ch_PP-OCRv4_rec_infer", (48, 320)),
        ("ch_PP-OCRv4_det_infer", (96, 160)),
    ],
)
def test_text_is_found_and_read(name, size):
    pytest.importorskip("PIL")
    run_beside(TEXT / f"{name}.onnx", drawn_text(*size))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", ["trees", "linear", "boosting"] if EVERY_CASE else ["trees"])
def test_classifiers_of_scikit_learn(kind, classes):
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    from profuse.executor.functions.onnx_backend import PreparedModel
    from sklearn.datasets import load_iris
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    x, y = load_iris(return_X_y=True)
    x, y = x.astype(np.float32), np.minimum(y, classes - 1)
    made = {
        "trees": RandomForestClassifier(8, random_state=0),
        "linear": LogisticRegression(max_iter=300),
        "boosting": GradientBoostingClassifier(n_estimators=8, random_state=0),
    }[kind].fit(x, y)
    model = skl2onnx.to_onnx(made, x[:1], options={"zipmap": False}, target_opset={"": 18, "ai.onnx.ml": 3})
    wanted = runtime.InferenceSession(model.SerializeToString()).run(None, {"X": x})
    prepared = PreparedModel(model)
    for _ in range(3):
        assert_close(prepared.run([x]), wanted, 1e-5)
    assert prepared.function.state().tier == "optimized"


@pytest.fixture
def small_model(tmp_path):
    """tanh(x @ w), with w in a file of its own, and a node with a name."""
    w = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["z"], name="proj"), helper.make_node("Tanh", ["z"], ["y"])]
    floats = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", floats, ["n", 3])],
        [helper.make_tensor_value_info("y", floats, ["n", 2])],
        [numpy_helper.from_array(w, "w")],
    )
    path = tmp_path / "small.any"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, path, save_as_external_data=True, size_threshold=0, location="weights.bin")
    return path, w


def test_a_file_is_told_by_its_content_and_can_be_differentiated(small_model):
    path, w = small_model
    f = pf.load(path, background=False)
    x = np.full((4, 3), 0.3, np.float32)
    for _ in range(3):
        np.testing.assert_allclose(f(x=x), np.tanh(x @ w), rtol=1e-6)
    assert f.state().tier == "optimized" and f.state().counters["traces"] == 1
    wanted = (1 - np.tanh(x @ w) ** 2) @ w.T
    np.testing.assert_allclose(pf.grad(lambda v: np.sum(f(v)))(x), wanted, rtol=1e-5)
    assert "small.any:proj" in f.explain()
    f.save(path.with_name("small.saved"))
    np.testing.assert_array_equal(pf.load(path.with_name("small.saved"))(x=x), f(x=x))


@pytest.mark.parametrize("version", [3, 8])
def test_weights_that_are_inputs_may_be_given(version, tmp_path):
    """In files before version 4 all weights are inputs, and none is to be given."""
    floats, (b, w) = onnx.TensorProto.FLOAT, (np.arange(2, dtype=np.float32), np.full(2, 3, np.float32))
    nodes = [helper.make_node("Mul", ["x", "w"], ["z"]), helper.make_node("Add", ["z", "b"], ["y"])]
    infos = {name: helper.make_tensor_value_info(name, floats, [2]) for name in "wxby"}
    weights = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")]
    inputs = [infos[name] for name in "wxb"]
    graph = helper.make_graph(nodes, "g", inputs, [infos["y"]], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=version)
    onnx.save(model, tmp_path / "m.onnx")
    f, x = pf.load(tmp_path / "m.onnx", background=False), np.array([1, 2], np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(f(x), x * w + b)
    assert f.state().counters["traces"] == 1
    if version == 3:
        with pytest.raises(pf.ProfuseError):
            f(x, w=x)
        return
    for _ in range(2):
        np.testing.assert_array_equal(f(x, b=x), x * w + x)
        np.testing.assert_array_equal(f(x, x), x * x + b)  # behind those that must be given, in their order
    assert f.state().counters["traces"] == 3
    with pytest.raises(pf.ProfuseError, match="w has dtype float64"):
        f(x, w=np.ones(2))


@pytest.mark.parametrize("kind", ["INT4", "UINT4", "FLOAT8E4M3FN", "FLOAT8E5M2"])
@pytest.mark.parametrize("is_constant", [False, True])
def test_narrow_weights_are_dequantised(kind, is_constant):
    """Nothing but their numbers is looked at; where their dtype is asked, they are refused."""
    from profuse.executor.functions.onnx_backend import PreparedModel

    kinds, numbers = onnx.TensorProto, [1, 2, 3, 4, 5, 7]
    tensor = helper.make_tensor("w", getattr(kinds, kind), [3, 2], numbers)
    zero = helper.make_tensor("z", getattr(kinds, kind), [], [2])
    scale = numpy_helper.from_array(np.array(0.5, np.float32), "s")
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["v"]),
        helper.make_node("MatMul", ["x", "v"], ["y"]),
    ]
    weights = [tensor, zero, scale]
    if is_constant:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value=weights.pop(0)))
    inputs = [helper.make_tensor_value_info("x", kinds.FLOAT, ["n", 3])]
    outputs = [helper.make_tensor_value_info("y", kinds.FLOAT, ["n", 2])]
    x, w = np.arange(6, dtype=np.float32).reshape(2, 3), (np.array(numbers, np.float32).reshape(3, 2) - 2) * 0.5
    versions = {"opset_imports": [helper.make_opsetid("", 21)], "ir_version": 10}
    prepared = PreparedModel(helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, weights), **versions))
    for _ in range(3):
        np.testing.assert_allclose(prepared.run([x])[0], x @ w, rtol=1e-6)
    nodes.append(helper.make_node("Identity", ["w"], ["same"]))
    outputs.append(helper.make_tensor_value_info("same", getattr(kinds, kind), [3, 2]))
    with pytest.raises(pf.ProfuseError, match=kind):
        PreparedModel(helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, weights), **versions))


def test_functions_of_older_operators_are_inlined_in_branches():
    """Their bodies are of the version in which they came, and are inlined if they are said to be of this one."""
    kinds = onnx.TensorProto
    types = {"x": (kinds.FLOAT, [4, 3]), "t": (kinds.INT64, [4]), "c": (kinds.BOOL, [])}
    inputs = [helper.make_tensor_value_info(name, *type_) for name, type_ in types.items()]
    end = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [])]
    node = helper.make_node("SoftmaxCrossEntropyLoss", ["x", "t"], ["y"])
    branches = {f"{k}_branch": helper.make_graph([node], k, [], end) for k in ("then", "else")}
    outer = [helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [])]
    graph = helper.make_graph([helper.make_node("If", ["c"], ["z"], **branches)], "g", inputs, outer)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    from profuse.executor.functions.onnx_backend import PreparedModel

    x, t = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32), np.array([0, 2, 1, 1])
    shares = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    prepared = PreparedModel(model)
    for flag in (True, False, True):
        (y,) = prepared.run([x, t, np.array(flag)])
        np.testing.assert_allclose(y, -np.log(shares[np.arange(4), t]).mean(), rtol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_support_vectors_without_probabilities(classes):
    """The scores are those of the pairs of classes, from which scikit-learn's converter computes those of classes."""
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    from profuse.executor.functions.onnx_backend import PreparedModel
    from sklearn.datasets import load_iris
    from sklearn.svm import SVC

    x, y = load_iris(return_X_y=True)
    x, y = x.astype(np.float32), np.minimum(y, classes - 1)
    model = skl2onnx.to_onnx(SVC().fit(x, y), x[:1], options={"zipmap": False}, target_opset={"": 18, "ai.onnx.ml": 3})
    wanted = runtime.InferenceSession(model.SerializeToString()).run(None, {"X": x})
    prepared = PreparedModel(model)
    for _ in range(3):
        assert_close(prepared.run([x]), wanted, 1e-4)
    assert prepared.function.state().tier == "optimized"


@pytest.mark.parametrize("classes", [2, 3])
def test_support_vectors_of_scikit_learn(classes):
    """Of two classes as well, the search for probabilities ends where that of scikit-learn does."""
    skl2onnx = pytest.importorskip("skl2onnx")
    from profuse.executor.functions.onnx_backend import PreparedModel
    from sklearn.datasets import load_iris
    from sklearn.svm import SVC

    x, y = load_iris(return_X_y=True)
    x, y = x.astype(np.float32), np.minimum(y, classes - 1)
    y[::4] = (y[::4] + 1) % classes  # so that the class of most votes is not always the most probable one
    fitted = SVC(probability=True, random_state=0).fit(x, y)
    model = skl2onnx.to_onnx(fitted, x[:1], options={"zipmap": False}, target_opset={"": 18, "ai.onnx.ml": 3})
    wanted = fitted.predict(x.astype(float)), fitted.predict_proba(x.astype(float)).astype(np.float32)
    prepared = PreparedModel(model)
    for _ in range(3):
        assert_close(prepared.run([x]), wanted, 1e-5)
    assert prepared.function.state().tier == "optimized"


def test_what_cannot_be_read_is_told(small_model, tmp_path):
    path, _ = small_model
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(pf.ProfuseError, match=r"small\.any"):
        pf.load(path)
    (tmp_path / "broken.onnx").write_bytes(b"\x08\x09\x12\xff\xff")
    with pytest.raises(pf.ProfuseError, match=r"broken\.onnx"):
        pf.load(tmp_path / "broken.onnx")


def test_operators_that_are_missing_are_told_with_their_place(tmp_path):
    nodes = [helper.make_node("ImageDecoder", ["x"], ["y"], name="open")]
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, ["n"])]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.UINT8, ["h", "w", "c"])]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", inputs, outputs)), tmp_path / "image.onnx")
    with pytest.raises(pf.ProfuseError, match=r"image\.onnx:open.*ImageDecoder"):
        pf.load(tmp_path / "image.onnx")


def test_inputs_and_outputs_may_leave_their_ranks_open(tmp_path):
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in "xy")
    graph = helper.make_graph([helper.make_node("Tanh", ["x"], ["y"])], "open", [x], [y])
    path = tmp_path / "open.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    f = pf.load(path, background=False)
    for array in (np.ones(3, np.float32), np.ones((2, 3), np.float32)) * 3:
        assert_close(f(array), (np.tanh(array),), 1e-6)
    assert f.state().counters["traces"] == 2  # one for each rank
