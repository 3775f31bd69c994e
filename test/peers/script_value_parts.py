"""Expressions of random programs in TorchScript, by dtype and shape of the tensors that they give."""

from __future__ import annotations

import random
from contextlib import contextmanager
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Drawn:
    """A tensor of a program: its name, kind of dtype, and shape."""

    name: str
    kind: str
    shape: str


class ValueExpressions:
    """Names and expressions of one program.

    Args:
        seed: of its random choices.

    Attributes:
        is_module: the program is a module, which has state.
        writes: whether it may write to its arguments.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.is_module = self._chance(0.3)
        self.writes = self._chance(0.3)
        self.lines: list[str] = []
        self._may_grow = True
        self._depth, self._count, self._left = 2 if self.is_module else 1, 0, 12
        self.tensors = [
            *(
                Drawn("x", "f", "m"),
                Drawn("y", "f", "m"),
                Drawn("w", "f", "r"),
                Drawn("k", "i", "m"),
                Drawn("m", "b", "m"),
            ),
            *(Drawn("s", "f", "s"), Drawn("parts[0]", "f", "m"), Drawn('table["a"]', "f", "r")),
        ]
        if self.is_module:
            self.tensors += [
                Drawn("self.weight", "f", "r"),
                Drawn("self.hidden", "f", "r"),
                Drawn("self.total", "f", "r"),
            ]
        self.ints, self.floats = ["n", "len(parts)", "x.size(0)", "x.dim()"], ["c", "1.5"]
        self.bools, self.lists, self.dicts, self.pairs, self.texts = ["flag"], [], [], [], ['"a"']
        if self.is_module:
            self.ints.append("self.calls")

    # --- pieces ---------------------------------------------------------------------------------

    def _chance(self, p: float) -> bool:
        return self.random.random() < p

    def emit(self, text: str) -> None:
        """Append a line."""
        self.lines.append("    " * self._depth + text)

    def fresh(self, letter: str) -> str:
        """A new name."""
        self._count += 1
        return f"{letter}{self._count}"

    @contextmanager
    def under(self, head: str):
        """Lines that are indented under one, whose names end with them."""
        self.emit(head)
        self._depth += 1
        kept = [list(names) for names in self._scopes()]
        yield
        for names, before in zip(self._scopes(), kept, strict=True):
            names[:] = before
        self._depth -= 1

    def _scopes(self) -> tuple[list, ...]:
        return self.tensors, self.ints, self.floats, self.bools, self.lists, self.dicts, self.pairs, self.texts

    def keep(self, kind: str, shape: str, text: str) -> Drawn:
        """Bind a tensor to a new name."""
        drawn = Drawn(self.fresh("t"), kind, shape)
        self.emit(f"{drawn.name} = {text}")
        self.tensors.append(drawn)
        return drawn

    def pick(self, kind: str, shape: str) -> str:
        """The text of a tensor of this kind and shape."""
        names = [t.name for t in self.tensors if t.kind == kind and t.shape == shape]
        if names and self._chance(0.9):
            return self.random.choice(names[-6:])
        literal = {"f": "0.5", "i": "2", "b": "1"}[kind]
        dtype = {"f": "x.dtype", "i": "k.dtype", "b": "torch.bool"}[kind]
        sizes = {"m": "[x.size(0), 3]", "c": "[x.size(0), 1]", "r": "[3]", "s": "[]"}[shape]
        return f"torch.full({sizes}, {literal}, dtype={dtype})"

    def tensor(self, kind: str, shape: str, depth: int = 2) -> str:
        """An expression of this kind and shape."""
        choice = self.random.random()
        if depth == 0 or choice < 0.25:
            return self.pick(kind, shape)
        if choice < 0.45:
            text = self.random.choice(UNARY[kind])
            return text.replace(
                "{}", self.tensor(kind, shape, depth - 1) if text.count("{}") == 1 else self.pick(kind, shape)
            )
        if choice < 0.7:
            other = self.random.choice([shape, *{"m": "crs", "c": "s", "r": "s", "s": ""}[shape]])
            return self.random.choice(BINARY[kind]).format(self.tensor(kind, shape, depth - 1), self.pick(kind, other))
        if choice < 0.8:
            ways = [(a, t) for a in SHAPES for b, t in VIEWS[a] if b == shape]
            source, text = self.random.choice(ways)
            return text.format(self.pick(kind, source))
        if choice < 0.9 and kind != "b":
            ways = [(a, t) for a in SHAPES for b, t in REDUCE[a] if b == shape]
            source, text = self.random.choice(ways)
            return text.format(self.pick(kind, source))
        if kind == "b":
            of = self.random.choice("fi")
            return self.random.choice(COMPARE).format(self.pick(of, shape), self.pick(of, shape))
        return self._of_other_kinds(kind, shape, depth)

    def _of_other_kinds(self, kind: str, shape: str, depth: int) -> str:
        if kind == "f":
            return self.random.choice(
                [
                    f"{self.pick('i', shape)}.to({self.pick('f', shape)}.dtype)",
                    f"torch.where({self.pick('b', shape)}, {self.pick('f', shape)}, {self.tensor('f', shape, 0)})",
                    f"{self.pick('f', shape)}.masked_fill({self.pick('b', shape)}, {self.number()})",
                    f"({self.pick('f', shape)} * {self.number()})",
                    f"({self.number()} - {self.pick('f', shape)})",
                    f"({self.pick('f', shape)} + {self.pick('i', shape)})",
                    f"({self.pick('f', shape)} * {self.pick('b', shape)})",
                    f"{self.pick('b', shape)}.float().to(x.dtype)",
                    f"torch.lerp({self.pick('f', shape)}, {self.pick('f', shape)}, 0.25)",
                ]
            )
        return self.random.choice(
            [
                f"{self.pick('b', shape)}.to(k.dtype)",
                f"({self.pick('i', shape)} + {self.int_()})",
                f"torch.where({self.pick('b', shape)}, {self.pick('i', shape)}, {self.pick('i', shape)})",
                f"{self.tensor('f', shape, 0)}.clamp(-9.0, 9.0).to(k.dtype)",
            ]
        )

    def number(self) -> str:
        """A float or int."""
        return self.random.choice([self.random.choice(self.floats), self.int_(), f"{self.random.uniform(-1, 1):.2f}"])

    def int_(self) -> str:
        """An int."""
        name = self.random.choice(self.ints)
        return self.random.choice(
            [name, f"({name} + 1)", f"({name} * 2)", f"({name} // 2)", f"max({name}, 2)", f"min({name}, n)", f"-{name}"]
        )

    def condition(self) -> str:
        """A condition, of numbers, kinds and contents."""
        some = [
            *(
                f"{self.int_()} > {self.random.randrange(4)}",
                f"{self.random.choice(self.floats)} < 0.5",
                "flag",
                "not flag",
            ),
            *("b is None", "x.dtype == torch.float64", "x.size(0) > 4", "x.is_floating_point()", "k.numel() > 9"),
            *(f"bool({self.pick('b', 's')})", f"bool({self.tensor('f', 's', 1)} > {self.number()})", "bool(m.any())"),
            *(f"{self.random.choice(self.texts)} in table", f"{self.int_()} == {self.int_()} or flag"),
            f"int({self.pick('i', 's')}) > {self.int_()}",
        ]
        return self.random.choice(some)
