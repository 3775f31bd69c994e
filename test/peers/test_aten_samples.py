"""ATen's table on samples of torch's operator database, forward and backward; skipped without torch."""

from __future__ import annotations

import functools
import json
import warnings

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("expecttest", reason="expecttest, which torch's operator database imports, is not installed")
aten_samples = pytest.importorskip("aten_samples", reason="torch's operator database is not installed")

INFOS = {aten_samples.full_name(info): info for info in aten_samples.op_db}
COUNTS = json.loads(aten_samples.COUNTS.read_text("utf-8"))
WHOLE = 670  # operators all samples of which are right; the number may only rise
# A few of each kind, which run where torch is installed.
FEW = (
    *("clamp", "sum", "max.reduction_with_dim", "sort", "cat", "index_put", "scatter_add", "addmm"),
    *("nn.functional.conv2d", "native_layer_norm", "nn.functional.max_pool2d", "nn.functional.interpolate.bilinear"),
)
# Entries that are like each other, each of which is put in the place of the next.
ALIKE = (
    ("sin", "cos", "tan", "tanh", "exp", "expm1", "sigmoid", "erf", "floor", "ceil", "round", "abs", "neg"),
    ("add", "sub", "mul", "div", "atan2", "maximum", "minimum", "fmod", "remainder", "hypot", "copysign"),
    ("eq", "ne", "lt", "le", "gt", "ge"),
    ("amax", "amin", "sum", "mean", "prod", "var", "std"),
    ("bitwise_and", "bitwise_or", "bitwise_xor"),
    ("cumsum", "cumprod", "softmax", "log_softmax"),
    ("argmax", "argmin"),
    ("tril", "triu"),
)


def outcome_of(name, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return aten_samples.outcome_of(INFOS[name], **options)


@pytest.mark.parametrize("name", FEW)
def test_samples_are_torchs_on_compiled_plans(name):
    outcome = outcome_of(name, most=2, compiled=1, dtypes=(torch.float32,))
    assert not outcome.wrong and not outcome.refused
    assert outcome.compiled >= 1


OTHER_DTYPES = {
    "nn.functional.glu": torch.bfloat16,
    "mT": torch.complex64,
    "corrcoef": torch.bfloat16,
    "einsum": torch.int32,
    "nn.functional.bilinear": torch.int32,
    "nan_to_num": torch.bfloat16,
    "native_batch_norm": torch.float16,
    "nn.functional.interpolate.bicubic": torch.bfloat16,
}


@pytest.mark.parametrize("name", OTHER_DTYPES if EVERY_CASE else list(OTHER_DTYPES)[:2])
def test_samples_of_other_dtypes_are_torchs(name):
    outcome = outcome_of(name, most=3, compiled=1, dtypes=(OTHER_DTYPES[name],))
    assert not outcome.wrong and not outcome.refused
    assert outcome.compiled == 1


def test_counts_only_rise():
    whole = [name for name, entry in COUNTS.items() if entry["right"] and not entry["refused"]]
    assert len(COUNTS) > 650 and len(whole) >= WHOLE
    assert not any(entry["wrong"] for entry in COUNTS.values())


@pytest.mark.parametrize("name", sorted(COUNTS) if EVERY_CASE else ("nn.functional.mish",))
def test_counts_hold(name):
    entry = COUNTS[name]
    outcome = outcome_of(name, most=entry["most"], compiled=entry["most_compiled"])
    assert not outcome.wrong
    assert outcome.right >= entry["right"] and outcome.compiled >= entry["compiled"]


def found_in_place(find, name, other, asked):
    """The handler of a name, where one entry of the table is in the place of another."""
    return find(other if asked.partition(".")[0] == name else asked)


@pytest.mark.parametrize("names", ALIKE if EVERY_CASE else ALIKE[2:3], ids=lambda names: names[0])
def test_no_two_entries_can_be_swapped(names, monkeypatch):
    find = aten_samples.ATEN.find
    for name, other in zip(names, names[1:] + names[:1], strict=True):
        monkeypatch.setattr(aten_samples.ATEN, "find", functools.partial(found_in_place, find, name, other))
        infos = [full for full in (name, f"nn.functional.{name}", f"{name}.no_rounding_mode") if full in INFOS]
        outcome = outcome_of(infos[0], most=8, compiled=0, until_wrong=True)
        monkeypatch.undo()
        assert outcome.wrong or outcome.refused, f"{name} may be {other}"


def gradients(name, most):
    """Gradients of samples, ours and torch's, of the sum of all results weighted by their numbers."""
    info = INFOS[name]
    torch.manual_seed(0)
    for number, sample in enumerate(list(info.sample_inputs("cpu", torch.float64, requires_grad=True))):
        if number >= most:
            return
        leaves, spec = aten_samples.pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
        wanted_of = [k for k, t in enumerate(tensors) if t.requires_grad]
        if not wanted_of:
            continue

        def function(*values, leaves=leaves, spec=spec, sample=sample):
            parts = iter(values)
            first, args, kwargs = aten_samples.pytree.tree_unflatten(
                [next(parts) if isinstance(x, torch.Tensor) else x for x in leaves], spec
            )
            return sample.output_process_fn_grad(info.op(first, *args, **kwargs))

        outputs = [y for y in aten_samples.pytree.tree_leaves(function(*tensors)) if isinstance(y, torch.Tensor)]
        used = [k for k, y in enumerate(outputs) if y.requires_grad]
        if not used or any(outputs[k].is_complex() for k in used):
            continue
        loss = sum((outputs[k] * weights(tuple(outputs[k].shape))).sum() for k in used)
        theirs = torch.autograd.grad(loss, [tensors[k] for k in wanted_of], allow_unused=True)
        plain = [t.detach().clone() for t in tensors]
        graph = next(iter(aten_samples.graphs(function, plain)))
        imported = aten_samples.ImportedFunction(graph, aten_samples.TABLE, single=False)

        factors = [weights(tuple(y.shape)).numpy() for y in outputs]

        def total(*arrays, imported=imported, used=used, factors=factors):
            found = imported(*arrays)
            return sum(np.sum(found[k] * factors[k]) for k in used)

        ours = pf.grad(total, wrt=tuple(wanted_of))(*aten_samples.arrays_of(plain))
        yield ours, theirs


def weights(shape):
    count = int(np.prod(shape))
    return torch.from_numpy(np.cos(np.arange(count, dtype=np.float64)).reshape(shape))


GRADIENTS = (
    *("clamp", "amax", "linalg.vector_norm", "nn.functional.hardtanh", "max.reduction_with_dim", "sort", "cumprod"),
    *("nn.functional.softplus", "index_put", "var", "nn.functional.max_pool2d", "prod", "nn.functional.layer_norm"),
    *("linalg.pinv", "linalg.pinv.hermitian", "linalg.pinv.singular", "median", "nanmedian", "fmax", "logit", "std"),
    *("grid_sampler_2d", "nn.functional.embedding_bag", "linalg.householder_product", "ormqr", "corrcoef"),
    *("logcumsumexp", "repeat", "linalg.lu", "linalg.lu_solve", "lu_unpack", "matrix_exp"),
    *("linalg.lstsq.grad_oriented", "nn.functional.ctc_loss", "_upsample_bilinear2d_aa"),
)


@pytest.mark.parametrize("name", GRADIENTS if EVERY_CASE else GRADIENTS[:4])
def test_gradients_are_torchs(name):
    count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ours, theirs in gradients(name, 12 if EVERY_CASE else 2):
            for found, wanted in zip(ours, theirs, strict=True):
                expected = np.zeros(np.shape(found)) if wanted is None else wanted.numpy()
                np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
            count += 1
    assert count
