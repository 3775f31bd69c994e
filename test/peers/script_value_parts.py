"""Expressions and statements of random programs in TorchScript, by dtype and shape of the tensors that they take."""

# What is drawn of a tensor: its dtype, f(loat) i(nteger) b(ool), and its shape: m(atrix) c(olumn) r(ow) s(calar).
SHAPES = "mcrs"
UNARY = {
    "f": (
        *(
            "torch.tanh({})",
            "torch.sigmoid({})",
            "torch.relu({})",
            "torch.exp(-{}.abs())",
            "(-{})",
            "{}.clamp(-1.0, 1.0)",
        ),
        *("torch.floor({})", "{}.sign()", "{}.square()", "torch.sqrt({}.abs() + 0.5)", "{}.clone()", "{}.contiguous()"),
        *("F.gelu({})", "F.leaky_relu({}, 0.1)", "{}.clamp(min=0.25)", "torch.where({} > 0, {}, -{})", "{}.detach()"),
        *(
            "F.dropout({}, 0.5, False).clone()",
            "torch.nan_to_num({})",
            "{}.reciprocal().clamp(-3.0, 3.0)",
            "torch.zeros_like({})",
        ),
    ),
    "i": (
        *(
            "(-{})",
            "{}.abs()",
            "({} // 2)",
            "({} % 3)",
            "{}.clamp(-2, 2)",
            "({} & 3)",
            "({} | 1)",
            "({} ^ 5)",
            "{}.clone()",
        ),
        *(
            "torch.remainder({}, 4)",
            "torch.ones_like({})",
            "{}.sign()",
            "(~{})",
            "({} * {})",
            "torch.div({}, 3, rounding_mode='trunc')",
        ),
    ),
    "b": ("(~{})", "torch.logical_not({})", "{}.clone()", "({} ^ True)"),
}
BINARY = {
    "f": (
        "({} + {})",
        "({} - {})",
        "({} * {})",
        "({} / ({}.abs() + 1))",
        "torch.maximum({}, {})",
        "torch.minimum({}, {})",
        "torch.atan2({}, {})",
    ),
    "i": ("({} + {})", "({} - {})", "({} * {})", "torch.maximum({}, {})", "({} & {})", "({} // ({}.abs() + 1))"),
    "b": ("({} & {})", "({} | {})", "({} ^ {})", "torch.logical_or({}, {})", "({} == {})"),
}
COMPARE = ("({} > {})", "({} <= {})", "({} == {})", "({} != {})", "torch.ge({}, {})")
# From one shape to another, of matrices and rows.
VIEWS = {
    "m": (
        ("r", "{}[0]"),
        ("r", "{}[-1]"),
        ("m", "{}.flip(1)"),
        ("m", "{}.t().t()"),
        ("c", "{}[:, 0:1]"),
        ("c", "{}[:, 1].unsqueeze(1)"),
    ),
    "r": (
        ("s", "{}[0]"),
        ("s", "{}[-1]"),
        ("r", "{}.view(-1)"),
        ("r", "{}.reshape(3)"),
        ("r", "{}.flip(0)"),
        ("r", "{}.unsqueeze(0).squeeze(0)"),
    ),
    "c": (("c", "{}.view(-1, 1)"), ("c", "{}.squeeze(1).unsqueeze(1)")),
    "s": (("s", "{}.reshape(1)[0]"), ("s", "{}.unsqueeze(0).squeeze()")),
}
REDUCE = {
    "m": (
        ("r", "{}.sum(0)"),
        ("s", "{}.sum()"),
        ("c", "{}.sum(1, keepdim=True)"),
        ("m", "{}.cumsum(1)"),
        ("m", "{}.sort(1)[0]"),
        ("c", "{}.topk(1, 1)[0]"),
    ),
    "r": (("s", "{}.sum()"), ("s", "{}.max()"), ("s", "{}.prod()"), ("r", "{}.cumsum(0)"), ("r", "torch.sort({})[0]")),
    "c": (("s", "{}.sum()"), ("c", "{}.cumsum(0)")),
    "s": (("s", "{}.sum()"), ("s", "{}.max()")),
}
WRITES = {
    "f": (
        "{}.add_({})",
        "{}.mul_({})",
        "{} += {}",
        "{} -= {}",
        "{}.copy_({})",
        "{}.clamp_(-1.0, 1.0)",
        "{}.zero_()",
        "{}.fill_(0.5)",
        "{}.tanh_()",
        "{}.neg_()",
    ),
    "i": ("{}.add_({})", "{} *= {}", "{} -= {}", "{}.copy_({})", "{}.zero_()", "{}.fill_(2)", "{}.clamp_(-1, 2)"),
    "b": ("{}.logical_not_()", "{} &= {}", "{} |= {}", "{}.fill_(True)", "{}.copy_({})"),
}
PLACES = {"m": ("[0]", "[:, 0]", "[:, 1:]", "[-1]", "[0, 1]"), "r": ("[0]", "[1:]", "[-1]"), "c": ("[0]",), "s": ()}
