"""Models for `bench/sources.py` that packages fit, trace or export here: scikit-learn, LightGBM, torch, jax."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import profuse as pf

Pair = tuple[Callable[[], Any], Callable[[], Any]]
FOLDER = Path(tempfile.mkdtemp(prefix="profuse-sources-"))


def fitted_models() -> Iterator[tuple[str, Callable[[], Pair]]]:
    """Models of tables, of which a call sees one row or a hundred, against onnxruntime."""
    try:
        import skl2onnx
        from onnx_models import session
        from sklearn.datasets import load_iris
        from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.neural_network import MLPClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC
    except ImportError:
        return
    x, y = load_iris(return_X_y=True)
    x = x.astype(np.float32)

    def pair(path: Path, rows: int) -> Callable[[], Pair]:
        def calls() -> Pair:
            peer, ours = session(path), pf.load(path, background=False)
            feed = np.ascontiguousarray(x[:rows])
            name = peer.get_inputs()[0].name
            return lambda: ours(feed), lambda: peer.run(None, {name: feed})

        return calls

    models = {
        "random forest": RandomForestClassifier(20, random_state=0),
        "boosted trees": GradientBoostingClassifier(n_estimators=20, random_state=0),
        "scaled logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
        "perceptron": MLPClassifier((64, 64), max_iter=50, random_state=0),
        "support vectors": SVC(probability=True, random_state=0),
    }
    for name, model in models.items():
        options = {"zipmap": False}
        exported = skl2onnx.to_onnx(model.fit(x, y), x[:1], options=options, target_opset={"": 18, "ai.onnx.ml": 3})
        path = FOLDER / f"{name.replace(' ', '_')}.onnx"
        path.write_bytes(exported.SerializeToString())
        for rows in (1, 100):
            yield f"onnx {name}, {rows} rows", pair(path, rows)
    path = _boosted(x, y)
    if path is not None:
        yield "onnx LightGBM, 100 rows", pair(path, 100)


def _boosted(x: np.ndarray, y: np.ndarray) -> Path | None:
    try:
        import lightgbm
        from onnxmltools import convert_lightgbm
        from onnxmltools.convert.common.data_types import FloatTensorType
    except ImportError:
        return None
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1).fit(x, y)
    types = [("X", FloatTensorType([None, x.shape[1]]))]
    exported = convert_lightgbm(model, initial_types=types, zipmap=False, target_opset=15)
    path = FOLDER / "lightgbm.onnx"
    path.write_bytes(exported.SerializeToString())
    return path


def scripts() -> Iterator[tuple[str, Callable[[], Pair]]]:
    """Modules that torch has traced or scripted, against torch's own executor."""
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)  # one operator of torch's own, with nothing to see in it
    nn = torch.nn
    torch.manual_seed(0)

    def pair(module: Any, *inputs: Any) -> Callable[[], Pair]:
        def calls() -> Pair:
            ours = pf.torch.script(module, background=False)

            def without_gradients(function: Callable) -> Callable[[], Any]:
                def call() -> Any:
                    with torch.no_grad():
                        return function(*inputs)

                return call

            return without_gradients(ours), without_gradients(module)

        return calls

    class Elementwise(nn.Module):
        def forward(self, x):  # torch.jit takes what has no type as a tensor
            y = torch.tanh(x) * 0.5 + torch.sigmoid(x) * x
            return torch.nn.functional.gelu(y) - y.mean(-1, keepdim=True)

    class Steps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.Linear(32, 16)

        def forward(self, x):
            state = torch.zeros(x.shape[0], 16)
            for t in range(x.shape[1]):
                state = torch.tanh(self.cell(torch.cat([x[:, t], state], -1)))
            return state

    perceptron = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.LayerNorm(64)).eval()
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval()
    convolutions = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    ).eval()  # fmt: skip
    cases = {
        "elementwise 64x1024": (torch.jit.script(Elementwise()), torch.randn(64, 1024)),
        "perceptron 8x64": (torch.jit.script(perceptron), torch.randn(8, 64)),
        "loop of a cell 4x20x16": (torch.jit.script(Steps().eval()), torch.randn(4, 20, 16)),
        "convolutions 1x3x32x32": (torch.jit.script(convolutions), torch.randn(1, 3, 32, 32)),
    }
    with torch.no_grad():
        x = torch.randn(2, 32, 64)
        cases["transformer layer 2x32x64"] = (torch.jit.trace(layer, x), x)
    for name, case in cases.items():
        yield f"torchscript {name}", pair(*case)


def exports() -> Iterator[tuple[str, Callable[[], Pair]]]:
    """Functions that jax exports, against jax's own compiled calls."""
    try:
        import jax_functions
    except ImportError:
        return
    from jax import block_until_ready, export, jit, tree

    draw = np.random.default_rng(0).standard_normal

    def floats(*shape: int) -> np.ndarray:
        return draw(shape).astype(np.float32)

    def pair(name: str, function: Callable, arguments: tuple) -> Callable[[], Pair]:
        def calls() -> Pair:
            path = FOLDER / f"{name}.mlir"
            path.write_bytes(export.export(jit(function))(*arguments).mlir_module_serialized)
            ours, peer = pf.load(path, background=False), jit(function)

            def waited() -> Any:
                results = block_until_ready(peer(*arguments))
                return tree.leaves(results) if isinstance(results, (tuple, list)) else results

            return lambda: ours(*arguments), waited

        return calls

    cases = {
        "mlp": (jax_functions.mlp, floats(64, 256), floats(256, 128), floats(128)),
        "layernorm": (jax_functions.layernorm, floats(64, 1024), floats(1024), floats(1024)),
        "attention": (jax_functions.attention, *(floats(2, 4, 32, 16) for _ in range(3))),
        "adam": (jax_functions.adam, floats(4096), floats(4096), floats(4096), np.abs(floats(4096))),
        "lstm": (jax_functions.lstm, floats(20, 16), floats(16, 64), floats(16, 64)),
        "runge_kutta": (jax_functions.runge_kutta, floats(4096)),
    }
    for name, (function, *arguments) in cases.items():
        yield f"stablehlo {name}", pair(name, function, tuple(arguments))


__all__ = ["exports", "fitted_models", "scripts"]
