"""Names of ATen that samples of torch's database do not have: each called by name, here and in torch."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from profuse.dialect.importers.foreign.aten.all_aten import ATEN
from profuse.dialect.importers.foreign.foreign_graph import ForeignBlock, ForeignGraph, ForeignNode, ValueRef
from profuse.dialect.importers.foreign.imported_function import ImportedFunction

COUNTS = Path(__file__).with_name("aten_counts.json")
has_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
RNG = np.random.default_rng(7)
P = RNG.uniform(0.1, 0.9, (3, 4)).astype(np.float32)
Q = RNG.uniform(1.1, 2.0, (3, 4)).astype(np.float32)
I = RNG.integers(0, 6, (3, 4))  # noqa: E741
B = RNG.random((3, 4)) < 0.5
S = RNG.standard_normal((4, 4)).astype(np.float32)
V = RNG.standard_normal((2, 6, 4)).astype(np.float32)
IMAGE = RNG.standard_normal((2, 4, 6, 6)).astype(np.float32)
VOLUME = RNG.standard_normal((1, 2, 4, 4, 4)).astype(np.float32)
C = (P + 1j * Q).astype(np.complex64)
STATS = (Q[0], P[0], P[1], Q[1])  # weight, bias, mean, variance of four channels
CELL = [RNG.standard_normal(s).astype(np.float32) for s in ((12, 3), (12, 4), (12,), (12,))]


def cell(gates):
    return (V[:, 0, :3], P[:2], *(w[: 4 * gates] for w in CELL))


def layer(weights, state):
    """A recurrent layer over two steps of six vectors."""
    return (V[:, :, :3].copy(), state, tuple(weights), True, 1, 0.0, False, False, False)


ATTENTION = (CELL[1], CELL[2], S, P[0])  # weights and biases of the projections
LSTM = [RNG.standard_normal(s).astype(np.float32) for s in ((16, 3), (16, 4), (16,), (16,))]
CALLS = {
    **dict.fromkeys(
        (
            *("absolute", "arccos", "arcsin", "arctan", "arcsinh", "arctanh", "fix", "negative", "special_digamma"),
            *("special_erf", "special_erfc", "special_erfinv", "special_exp2", "special_expit", "special_expm1"),
            *("special_gammaln", "special_i0", "special_log1p", "special_logit", "special_psi", "special_sinc"),
            *("detach_copy", "lift", "lift_fresh", "contiguous", "dim", "numel", "log_sigmoid_forward"),
        ),
        (P,),
    ),
    "arccosh": (Q,),
    **dict.fromkeys(("arctan2", "multiply", "special_gammainc", "special_gammaincc", "special_xlogy"), (P, Q)),
    **dict.fromkeys(("greater", "greater_equal", "less", "less_equal", "not_equal", "type_as"), (I, I[::-1].copy())),
    **dict.fromkeys(("__and__", "__or__", "__xor__", "__lshift__", "__rshift__"), (I, I[::-1].copy())),
    **dict.fromkeys(("det", "inverse", "slogdet", "adjoint", "_linalg_det", "_linalg_slogdet"), (S,)),
    **dict.fromkeys(("_softmax", "_log_softmax"), (P, 1, False)),
    "special_softmax": (P, 1, None),
    "special_log_softmax": (P, 1),
    "special_logsumexp": (P, (1,)),
    **dict.fromkeys(("concat", "concatenate", "row_stack"), ((P, Q),)),
    **dict.fromkeys(("swapaxes", "swapdims", "moveaxis"), (V, 0, 2)),
    "clip": (P, 0.3, 0.6),
    "conj": (C,),
    "imag": (C,),
    "view_as_real": (C,),
    "ger": (P[0], Q[1]),
    "linalg_matmul": (P, S),
    "matrix_power": (S, 3),
    "size": (V, 1),
    "select_copy": (V, 1, -1),
    "slice_copy": (V, 1, 1, 5, 2),
    "split_copy": (V, 2, 1),
    "unsafe_split_with_sizes": (V, (1, 5), 1),
    "native_channel_shuffle": (IMAGE, 2),
    "_adaptive_avg_pool2d": (IMAGE, (3, 4)),
    "_adaptive_avg_pool3d": (VOLUME, (2, 2, 3)),
    "upsample_nearest2d": (IMAGE, (9, 4)),
    "upsample_nearest3d": (VOLUME, (3, 5, 8)),
    "_upsample_nearest_exact2d": (IMAGE, (9, 4)),
    "_upsample_nearest_exact3d": (VOLUME, (3, 5, 8)),
    "convolution": (IMAGE, IMAGE[:, :, :3, :3].copy(), None, (1, 2), (1, 0), (1, 1), False, (0, 0), 1),
    "_prelu_kernel": (P - Q, P),
    "_cdist_forward": (P, Q, 1.5, None),
    "_pdist_forward": (P, 2.0),
    "_reshape_copy": (P, (2, 6)),
    "_batch_norm_no_update": (IMAGE, *STATS, 0.1, 1e-5),
    "_native_batch_norm_legit_no_training": (IMAGE, *STATS, 0.1, 1e-5),
    "_native_batch_norm_legit_functional": (IMAGE, *STATS, True, 0.1, 1e-5),
    "_batch_norm_with_update_functional": (IMAGE, *STATS, 0.1, 1e-5),
    "_native_batch_norm_legit.no_stats": (IMAGE, *STATS[:2], True, 0.1, 1e-5),
    "instance_norm": (IMAGE, *STATS, True, 0.1, 1e-5, False),
    "_fused_rms_norm": (V, (4,), P[0], 1e-6),
    "rms_norm": (V, (4,), P[0], 1e-6),
    "nll_loss": (P, I[:, 0] % 4, None, 1, 2),
    "nll_loss_forward": (P, I[:, 0] % 4, Q[0], 1, -100),
    "nll_loss2d": (IMAGE, RNG.integers(0, 4, (2, 6, 6)), None, 1, -100),
    "nll_loss2d_forward": (IMAGE, RNG.integers(0, 4, (2, 6, 6)), None, 2, 1),
    "reflection_pad1d": (V, (2, 1)),
    "reflection_pad2d": (IMAGE, (2, 1, 0, 3)),
    "reflection_pad3d": (VOLUME, (2, 1, 0, 3, 1, 1)),
    "replication_pad1d": (V, (2, -1)),
    "replication_pad2d": (IMAGE, (2, 1, 0, 3)),
    "replication_pad3d": (VOLUME, (2, 1, 0, 3, 1, 1)),
    "lstm_cell": (V[:, 0, :3], (P[:2], Q[:2]), *LSTM),
    "gru_cell": cell(3),
    "rnn_relu_cell": cell(1),
    "rnn_tanh_cell": cell(1),
    "lstm.input": layer(LSTM, (V[:1], V[1:])),
    "gru.input": layer(CELL, V[:1]),
    **dict.fromkeys(("rnn_relu.input", "rnn_tanh.input"), layer([w[:4] for w in CELL], V[:1])),
    "_native_multi_head_attention": (V, V, V, 4, 2, *ATTENTION, None, False),
    "_transformer_encoder_layer_fwd": (
        *(V, 4, 2, *ATTENTION, True, False, 1e-5, Q[0], P[0], Q[1], P[1]),
        *(P, Q[:, 0].copy(), P.T.copy(), Q[2]),
    ),
    "_scaled_dot_product_flash_attention_for_cpu": (IMAGE, IMAGE[::-1].copy(), IMAGE, 0.0, True),
    "tensor_split": (V, (2, 3), 1),
    "grid_sampler": (IMAGE, RNG.uniform(-1.5, 1.5, (2, 3, 5, 2)).astype(np.float32), 2, 2, True),
    "embedding_bag": (P, I.ravel() % 3, np.array([0, 4, 4, 9]), False, 2),
    **dict.fromkeys(
        ("_embedding_bag", "_embedding_bag_forward_only"),
        (P, I.ravel() % 3, np.array([0, 5, 12]), False, 1, False, None, True, 2),
    ),
    "_linalg_eigvals": (S,),
    "_upsample_bicubic2d_aa": (IMAGE, (4, 3), False),
    "_grouped_mm": (V[0], np.stack([S, S.T]), np.array([2, 6], np.int32)),
    "orgqr": (S[:, :3].copy(), P[0, :3]),
    "fractional_max_pool2d": (IMAGE, (2, 3), (4, 3), np.tile(np.float32([0.1, 0.5]), (2, 4, 1))),
    "fractional_max_pool3d": (VOLUME, (2, 1, 3), (2, 3, 1), RNG.random((1, 2, 3), np.float32)),
    "_histogramdd_bin_edges": (V, (2, 3, 1, 4)),
    "_histogramdd_from_bin_cts": (V, (2, 3, 1, 4)),
    "_histogramdd_from_bin_tensors": (V[..., :2].copy(), (np.sort(S[0]), np.sort(S[1]))),
    "histogram.bin_ct": (V[:0], 3),
}
# Results of which torch does not tell the contents, or that only its own backward passes read.
NOT_COMPARED = {
    "log_sigmoid_forward": {1},
    "_linalg_det": {1, 2},
    "_linalg_slogdet": {2, 3},
    "_scaled_dot_product_flash_attention_for_cpu": {1},
    "_batch_norm_with_update_functional": {3},
    "_batch_norm_no_update": {3},
    "embedding_bag": {1, 2, 3},
    "_embedding_bag": {1, 2, 3},
    "_embedding_bag_forward_only": {1, 2, 3},
}
# Names that are no operators of `torch.ops.aten`, or cannot be called by name there.
NOT_CALLED = {
    **dict.fromkeys(("bool", "byte", "char", "double", "float", "half", "int", "long", "short"), "methods of tensors"),
    **dict.fromkeys(("__rand__", "__ror__", "__rxor__", "__rsub__", "__rmul__", "__rpow__"), "methods of tensors"),
    **dict.fromkeys(("__rlshift__", "__rrshift__", "__matmul__", "__invert__"), "methods of tensors"),
    **dict.fromkeys(("sym_numel", "sym_size"), "of symbolic sizes, in FX graphs alone"),
    **dict.fromkeys(("rand", "rand_like", "native_dropout", "normal_functional"), "random"),
    "rrelu": "random in training; in evaluation it is leaky_relu",
    "floordiv": "of numbers, in TorchScript alone",
    "tensor": "of numbers, in TorchScript alone",
    "_convolution": "convolution, with flags of libraries",
    "_index_put_impl": "index_put, with a flag of checks",
    "stft.center": "refused: torch pads the signal itself, and calls stft",
    "profuse::as_strided_copy": "of graphs that tell how a tensor lies",
    "profuse::as_strided_scatter": "of graphs that tell how a tensor lies",
    "transformers::grouped_mm_fallback": "an operator of another package",
    **dict.fromkeys(("alpha_dropout", "feature_alpha_dropout", "feature_dropout"), "random"),
    "_reshape_alias": "a view with strides, which arrays have of their own",
}


def names_with_samples():
    entries = json.loads(COUNTS.read_text("utf-8")).values()
    names = {name for entry in entries for name in entry["names"]}
    names |= {name.partition(".")[0] for name in names}
    return names | {name[:-1] for name in names if name.endswith("_") and not name.endswith("__")}


def test_every_name_has_a_sample_or_a_call_or_a_reason():
    sampled = names_with_samples()
    assert len(sampled & set(ATEN)) > 430
    without = {name for name in ATEN if name not in sampled}
    assert not without - CALLS.keys() - NOT_CALLED.keys()
    assert not {name for name in CALLS if name not in ATEN}


def both(name, operands):
    """The results of an operator by its name: ours and torch's, each as a list."""
    import torch
    from torch.utils import _pytree as pytree

    leaves, spec = pytree.tree_flatten(operands)
    arrays = [x for x in leaves if isinstance(x, np.ndarray)]
    tensors = [torch.from_numpy(x.copy()) if isinstance(x, np.ndarray) else x for x in leaves]
    base, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, base)
    wanted = (getattr(packet, overload) if overload else packet)(*pytree.tree_unflatten(tensors, spec))
    numbers = iter(range(len(arrays)))
    refs = pytree.tree_unflatten([ValueRef(next(numbers)) if isinstance(x, np.ndarray) else x for x in leaves], spec)
    body = ForeignBlock(tuple(range(len(arrays))), [ForeignNode(name, refs, {}, (999,))], (ValueRef(999),))
    graph = ForeignGraph("f", body, tuple(f"x{k}" for k in range(len(arrays))), {}, "a call")
    found = ImportedFunction(graph, ATEN)(*[x.copy() for x in arrays])
    return [list(x) if isinstance(x, (tuple, list)) else [x] for x in (found, wanted)]


@has_torch
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_places_in_images_at_ties_and_outside(mode, padding):
    """Of a place between two elements, behind the ends, and of none at all."""
    for is_aligned in (False, True):
        steps = np.linspace(-2.5, 2.5, 31 if is_aligned else 25, dtype=np.float32)
        grid = np.stack(np.meshgrid(steps, steps), axis=-1)[None]
        if not padding:
            grid = np.concatenate(
                [grid, np.full((1, 1, len(steps), 2), np.nan), np.full((1, 1, len(steps), 2), np.inf)], 1
            )
        image = np.arange(30, dtype=np.float32).reshape(1, 1, 5, 6)
        with np.errstate(invalid="ignore"):
            ours, theirs = both("grid_sampler_2d", (image, grid.astype(np.float32), mode, padding, is_aligned))
        np.testing.assert_allclose(ours[0], theirs[0].numpy(), rtol=1e-4, atol=1e-4)


@has_torch
@pytest.mark.parametrize("name", CALLS)
def test_by_name(name):
    import torch

    ours, theirs = both(name, CALLS[name])
    assert len(ours) == len(theirs)
    for k, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        if k in NOT_COMPARED.get(name, ()):
            continue
        if not isinstance(y, torch.Tensor):
            assert x == y
            continue
        y = y.resolve_conj().numpy()
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
