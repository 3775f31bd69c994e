"""What `pf.nn` refuses: each error names the function and the argument, and says what to do, before it computes."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from profuse import nn

X4, X3, X2 = np.ones((2, 4, 5, 6)), np.ones((2, 4, 6)), np.ones((3, 4))
W4, W3 = np.ones((6, 4, 3, 3)), np.ones((6, 4, 3))
Q = np.ones((2, 4, 3))
SHAPES, ARGUMENTS, DTYPES = pf.ShapeError, pf.ArgumentError, pf.DTypeError

REFUSED = [
    (lambda: nn.linear(X2, np.ones((5, 3))), SHAPES, r"linear: input has shape \(3, 4\), weight \(5, 3\)"),
    (lambda: nn.linear(X2, np.ones((5, 4)), np.ones(4)), SHAPES, r"linear: bias has shape \(4,\), where there are 5"),
    (lambda: nn.linear([1.0], np.ones((5, 1))), ARGUMENTS, "linear: input is of type list"),
    (lambda: nn.linear(X2, np.ones((5, 4, 1))), SHAPES, "linear: weight has 3 axes"),
    (lambda: nn.linear(np.float64(1), np.ones(1)), SHAPES, "linear: input has shape"),
    (lambda: nn.conv2d(X2, W4), SHAPES, r"conv2d: input has 2 axes, shape \(3, 4\)"),
    (lambda: nn.conv2d(X4, W3), SHAPES, "conv2d: weight has 3 axes"),
    (lambda: nn.conv2d(X4, np.ones((6, 3, 3, 3))), SHAPES, "has 4 channels, where weight .* needs 3"),
    (lambda: nn.conv2d(X4, W4, np.ones(4)), SHAPES, "bias has shape .* 6 output channels"),
    (lambda: nn.conv2d(X4, W4, groups=3), ARGUMENTS, "groups=3 divides not both the 4 channels"),
    (lambda: nn.conv2d(X4, W4, groups=0), ARGUMENTS, "groups=0 is below 1"),
    (lambda: nn.conv2d(X4, W4, stride=0), ARGUMENTS, "stride=0 is below 1"),
    (lambda: nn.conv2d(X4, W4, stride=(1, 2, 3)), ARGUMENTS, r"stride=\(1, 2, 3\) has 3 entries"),
    (lambda: nn.conv2d(X4, W4, stride=1.5), ARGUMENTS, "stride=1.5 is no integer"),
    (lambda: nn.conv2d(X4, W4, stride=True), ARGUMENTS, "stride=True is no integer"),
    (lambda: nn.conv2d(X4, W4, dilation=0), ARGUMENTS, "dilation=0 is below 1"),
    (lambda: nn.conv2d(X4, W4, padding=-1), ARGUMENTS, "padding=-1 is below 0"),
    (lambda: nn.conv2d(X4, W4, padding="full"), ARGUMENTS, "padding='full' is not known"),
    (lambda: nn.conv2d(X4, W4, padding="same", stride=2), ARGUMENTS, r"padding='same' with stride=\(2, 2\)"),
    (lambda: nn.conv2d(X4, W4, dilation=3), SHAPES, "the kernel spans 7 along H, the padded input 5"),
    (lambda: nn.conv2d(X4, np.ones((6, 4, 0, 3))), SHAPES, "a kernel without elements"),
    (lambda: nn.conv1d(X3, W3, dilation=3), SHAPES, "conv1d: the kernel spans 7 along L, the padded input 6"),
    (lambda: nn.conv1d(X4, W3), SHAPES, "conv1d: input has 4 axes"),
    (lambda: nn.max_pool2d(X2, 2), SHAPES, "max_pool2d: input has 2 axes"),
    (lambda: nn.max_pool2d(X4, 7), SHAPES, "the window spans 7 along H, the padded input 5"),
    (lambda: nn.max_pool2d(X4, 2, padding=2), ARGUMENTS, "padding=2 is more than half"),
    (lambda: nn.max_pool2d(X4, 0), ARGUMENTS, "kernel_size=0 is below 1"),
    (lambda: nn.max_pool2d(X4 * 1j, 2), DTYPES, "max_pool2d: input is of complex128"),
    (lambda: nn.avg_pool2d(X4, 2, stride=0), ARGUMENTS, "avg_pool2d: stride=0"),
    (lambda: nn.avg_pool2d(X4, 2, divisor_override=0), ARGUMENTS, "divisor_override=0"),
    (lambda: nn.batch_norm(X4, None, None), ARGUMENTS, "batch_norm: running_mean or running_var is None"),
    (lambda: nn.batch_norm(X4, np.ones(4), None, training=True), ARGUMENTS, "running_mean or running_var is None"),
    (lambda: nn.batch_norm(X4, np.ones(3), np.ones(4)), SHAPES, r"running_mean has shape \(3,\), where there are 4"),
    (lambda: nn.batch_norm(X4, None, None, np.ones(3), training=True), SHAPES, "weight has shape"),
    (lambda: nn.batch_norm(np.ones((1, 4)), None, None, training=True), SHAPES, "has 1 elements in training"),
    (lambda: nn.batch_norm(np.ones((0, 4, 2)), None, None, training=True), SHAPES, "has 0 elements in training"),
    (lambda: nn.batch_norm(np.ones(4), None, None, training=True), SHAPES, r"batch_norm: input has shape \(4,\)"),
    (lambda: nn.batch_norm(X4.astype(int), np.ones(4), np.ones(4)), DTYPES, "input is of int64, no float"),
    (lambda: nn.layer_norm(X2, 3), SHAPES, r"does not end in normalized_shape=\(3,\)"),
    (lambda: nn.layer_norm(X2, ()), SHAPES, "does not end in normalized_shape"),
    (lambda: nn.layer_norm(X2, (2, 3, 4)), SHAPES, "does not end in"),
    (lambda: nn.layer_norm(X2, 4, np.ones(3)), SHAPES, "layer_norm: weight has shape"),
    (lambda: nn.layer_norm(X2, 4, bias=np.ones((1, 4))), SHAPES, "layer_norm: bias has shape"),
    (lambda: nn.group_norm(X4, 3), ARGUMENTS, "num_groups=3 does not divide 4"),
    (lambda: nn.group_norm(np.ones(4), 2), SHAPES, "group_norm: input has shape"),
    (lambda: nn.group_norm(X4, 2, np.ones(2)), SHAPES, "group_norm: weight has shape"),
    (lambda: nn.softmax(X2, 2), pf.AxisError, "softmax: dim=2 is no axis of an array with 2 axes"),
    (lambda: nn.softmax(X2, None), ARGUMENTS, "dim is None"),
    (lambda: nn.softmax(X2, 0.5), ARGUMENTS, "dim=0.5 is no integer"),
    (lambda: nn.log_softmax(np.float64(1), 0), pf.AxisError, "log_softmax: dim=0"),
    (lambda: nn.gelu(X2, "fast"), ARGUMENTS, "approximate='fast' is not known"),
    (lambda: nn.relu(3.0), ARGUMENTS, "relu: input is of type float"),
    (lambda: nn.dropout(X2, 1.5), ARGUMENTS, "p=1.5 is no probability"),
    (lambda: nn.dropout(X2, float("nan")), ARGUMENTS, "p=nan is no probability"),
    (lambda: nn.dropout(X2.astype(int), 0.5), DTYPES, "dropout: input is of int64"),
    (lambda: nn.embedding(X2, X2), DTYPES, "embedding: input is of float64"),
    (lambda: nn.embedding(np.array([3]), X2), pf.BoundsError, "input has 3, where there are 3"),
    (lambda: nn.embedding(np.array([0, -1]), X2), pf.BoundsError, "input has -1, where there are 3"),
    (lambda: nn.embedding(np.array([0]), X2, padding_idx=3), pf.BoundsError, "padding_idx=3 is no row"),
    (lambda: nn.embedding(np.array([0]), X4), SHAPES, "weight has 4 axes"),
    (lambda: nn.cross_entropy(X2, np.zeros(4, int)), SHAPES, r"target, of integers, has shape \(4,\), .* needs \(3,\)"),
    (lambda: nn.cross_entropy(X2, np.ones((3, 3))), SHAPES, r"target, of floats, has shape \(3, 3\)"),
    (lambda: nn.cross_entropy(X2, np.array([0, 1, 4])), pf.BoundsError, "target has 4, where there are 4"),
    (lambda: nn.cross_entropy(X2, np.array([0, -1, 2])), pf.BoundsError, "target has -1"),
    (lambda: nn.cross_entropy(X2, np.zeros(3, int), reduction="max"), ARGUMENTS, "reduction='max' is not known"),
    (lambda: nn.cross_entropy(X2, np.zeros(3, int), label_smoothing=2), ARGUMENTS, "label_smoothing=2"),
    (lambda: nn.cross_entropy(X2, np.zeros(3, int), np.ones(3)), SHAPES, "weight has shape .* 4 classes"),
    (lambda: nn.cross_entropy(X2, np.zeros(3, bool)), DTYPES, "target is of bool"),
    (lambda: nn.cross_entropy(X2.astype(int), np.zeros(3, int)), DTYPES, "input is of int64"),
    (lambda: nn.cross_entropy(np.float64(1), np.array(0)), SHAPES, "input has no axes"),
    (lambda: nn.cross_entropy(np.ones((3, 0)), np.zeros(3, int)), SHAPES, "has no classes"),
    (lambda: nn.mse_loss(X2, np.ones(4)), SHAPES, r"mse_loss: input has shape \(3, 4\), target \(4,\)"),
    (lambda: nn.scaled_dot_product_attention(Q, Q[..., :2], Q), SHAPES, "query has shape"),
    (lambda: nn.scaled_dot_product_attention(Q, Q, Q[:, :2]), SHAPES, "value"),
    (lambda: nn.scaled_dot_product_attention(Q[0, 0], Q, Q), SHAPES, "query has shape"),
    (lambda: nn.scaled_dot_product_attention(Q, Q, Q, np.ones((3, 3), bool)), SHAPES, "attn_mask has shape"),
    (lambda: nn.scaled_dot_product_attention(Q, Q, Q, np.ones((5, 2, 4, 4), bool)), SHAPES, "attn_mask has shape"),
    (lambda: nn.scaled_dot_product_attention(Q, Q, Q, np.ones((4, 4), int)), DTYPES, "attn_mask is of int64"),
    (lambda: nn.scaled_dot_product_attention(Q, Q, Q, np.ones((4, 4), bool), 0.0, True), ARGUMENTS, "is_causal"),
    (lambda: nn.scaled_dot_product_attention(Q, Q, Q, dropout_p=2.0), ARGUMENTS, "dropout_p=2.0"),
    (lambda: nn.max_pool1d(X4, 2), SHAPES, "max_pool1d: input has 4 axes"),
    (lambda: nn.avg_pool1d(X3, 7), SHAPES, "the window spans 7 along L, the padded input 6"),
    (lambda: nn.adaptive_avg_pool2d(X4, (1, 2, 3)), ARGUMENTS, "has 3 entries"),
    (lambda: nn.adaptive_avg_pool2d(X4, 0), ARGUMENTS, "output_size=0 is below 1"),
    (lambda: nn.conv_transpose2d(X4, np.ones((3, 4, 2, 2))), SHAPES, "has 4 channels, where weight has shape"),
    (lambda: nn.conv_transpose2d(X4, np.ones((4, 2, 2, 2)), groups=3), ARGUMENTS, "groups=3 does not divide the 4"),
    (lambda: nn.conv_transpose2d(X4, np.ones((4, 2, 2, 2)), np.ones(2), groups=2), SHAPES, "4 output channels"),
    (lambda: nn.conv_transpose2d(X4, np.ones((4, 2, 2, 2)), output_padding=1), ARGUMENTS, "output_padding=1 is not"),
    (lambda: nn.conv_transpose2d(X4, np.ones((4, 2, 2, 2)), padding=4), SHAPES, "would have -2 elements along H"),
    (lambda: nn.conv_transpose1d(X4, W3), SHAPES, "conv_transpose1d: input has 4 axes"),
    (lambda: nn.unfold(X4, 7), SHAPES, "unfold: the kernel spans 7 along H, the padded input 5"),
    (lambda: nn.instance_norm(X2), SHAPES, "instance_norm: input has shape"),
    (lambda: nn.instance_norm(np.ones((2, 3, 1))), SHAPES, "has 1 elements"),
    (lambda: nn.instance_norm(X4, use_input_stats=False), ARGUMENTS, "instance_norm: running_mean or running_var"),
    (lambda: nn.rms_norm(X2, 4, np.ones(3)), SHAPES, "rms_norm: weight has shape"),
    (lambda: nn.pad(X2, (1,)), ARGUMENTS, "has no even number of entries"),
    (lambda: nn.pad(X2, (1,) * 6), SHAPES, "is for more than the 2 axes"),
    (lambda: nn.pad(X2, (-3, -2)), SHAPES, "axis 1 of input, shape .* has fewer elements than are left out"),
    (lambda: nn.pad(X2, (4, 0), mode="reflect"), SHAPES, "has too few elements for mode='reflect' and 4"),
    (lambda: nn.pad(X2, (5, 0), mode="circular"), SHAPES, "has too few elements for mode='circular' and 5"),
    (lambda: nn.pad(X2, (1, 1), mode="edge"), ARGUMENTS, "mode='edge' is not known"),
    (lambda: nn.pad(X2, (1, 1), "reflect", 1.0), ARGUMENTS, "value=1.0 with mode='reflect'"),
    (lambda: nn.interpolate(X2, 3), SHAPES, "interpolate: input has 2 axes"),
    (lambda: nn.interpolate(X4), ARGUMENTS, "not one of size and scale_factor is given"),
    (lambda: nn.interpolate(X4, 3, 2.0), ARGUMENTS, "not one of size and scale_factor is given"),
    (lambda: nn.interpolate(X4, (3, 4, 5)), ARGUMENTS, "has 3 entries"),
    (lambda: nn.interpolate(X4, 3, mode="linear"), ARGUMENTS, "mode='linear' is not known"),
    (lambda: nn.interpolate(X4, 3, align_corners=True), ARGUMENTS, "align_corners with mode='nearest'"),
    (lambda: nn.interpolate(X4, scale_factor=0.1), ARGUMENTS, "leaves nothing of 5 along H"),
    (lambda: nn.interpolate(X4, scale_factor=-1.0), ARGUMENTS, "scale_factor=-1.0"),
    (lambda: nn.interpolate(X4.astype(int), 3, mode="bilinear"), DTYPES, "interpolate: input is of int64"),
    (lambda: nn.softplus(X2, beta=0), ARGUMENTS, "beta=0"),
    (lambda: nn.celu(X2, 0.0), ARGUMENTS, "alpha=0"),
    (lambda: nn.hardtanh(X2, 1.0, -1.0), ARGUMENTS, "min_val=1.0 is above max_val=-1.0"),
    (lambda: nn.glu(X2, 0), SHAPES, "an odd size along 0"),
    (lambda: nn.normalize(X2, p=0), ARGUMENTS, "p=0 is not positive"),
    (lambda: nn.normalize(X2, dim=2), pf.AxisError, "normalize: dim=2"),
    (lambda: nn.cosine_similarity(X2, np.ones((2, 4))), SHAPES, "x1 has shape"),
    (lambda: nn.one_hot(X2), DTYPES, "one_hot: tensor is of float64"),
    (lambda: nn.one_hot(np.array([0, 3]), 3), pf.BoundsError, "tensor has 3, where there are 3"),
    (lambda: nn.one_hot(np.zeros(0, int)), ARGUMENTS, "num_classes=-1 leaves no class"),
    (lambda: nn.nll_loss(X2, np.array([0, 1, 4])), pf.BoundsError, "nll_loss: target has 4, where there are 4"),
    (lambda: nn.nll_loss(X2, X2), DTYPES, "nll_loss: target is of float64"),
    (lambda: nn.smooth_l1_loss(X2, X2, beta=-1), ARGUMENTS, "beta=-1 is negative"),
    (lambda: nn.binary_cross_entropy_with_logits(X2, X2, np.ones(3)), SHAPES, "weight has shape"),
    (lambda: nn.binary_cross_entropy_with_logits(X2, np.ones(4)), SHAPES, "input has shape"),
]
NAMED = {"ids": lambda x: getattr(x, "__name__", x)}
OF_SHAPES = [case for case in REFUSED if case[1] is not pf.BoundsError]  # known while tracing


@pytest.mark.parametrize(
    ("call", "kind", "text"), [r for r in REFUSED if r[1]], ids=lambda x: getattr(x, "__name__", x)
)
def test_an_error_names_the_argument_and_the_way_out(call, kind, text):
    with pytest.raises(kind, match=text) as caught:
        call()
    assert isinstance(caught.value, pf.ProfuseError)
    assert str(caught.value).startswith(__file__) and "hint:" in str(caught.value)


@pytest.mark.parametrize(("call", "kind", "text"), OF_SHAPES[::4], **NAMED)
def test_the_same_inside_of_a_graph(call, kind, text):
    with pytest.raises(kind, match=text):
        pf.jit(lambda x: call() + x)(np.ones(()))


def test_classes_that_are_none_raise_in_native_code():
    for fn, good, bad in (
        (lambda t: nn.cross_entropy(np.sin(X2), t), [0, 1, 2], ([0, 1, 4], [0, -1, 2])),
        (lambda t: nn.embedding(t, np.sin(X2)), [0, 1, 2], ([0, 1, 3], [0, -1, 2])),
        (lambda t: nn.one_hot(t, 3), [0, 1, 2], ([0, 1, 3], [0, -1, 2])),
    ):
        jitted, grad = pf.jit(fn, background=False), pf.grad(lambda x, t, fn=fn: (x * fn(t)).sum(), background=False)
        for _ in range(3):
            np.testing.assert_allclose(jitted(np.array(good)), fn(np.array(good)))
            grad(1.0, np.array(good))
        for classes in bad:
            with pytest.raises(IndexError):
                jitted(np.array(classes))
            with pytest.raises(IndexError):
                grad(1.0, np.array(classes))


def test_nothing_is_computed_before_an_error():
    """Shapes are compared first: statistics stay, nothing is drawn."""
    mean, var = np.zeros(4), np.ones(4)
    with pytest.raises(pf.ShapeError):
        nn.batch_norm(X4, mean, var, np.ones(3), training=True)
    assert not mean.any() and (var == 1).all()
    pf.manual_seed(1)
    with pytest.raises(pf.ShapeError):
        nn.scaled_dot_product_attention(Q, Q, Q, np.ones((3, 3), bool), 0.5)
    first = nn.dropout(X4)
    pf.manual_seed(1)
    np.testing.assert_array_equal(nn.dropout(X4), first)
