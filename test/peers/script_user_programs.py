"""Random programs in TorchScript as people write their modules: submodules, helpers, named tuples, Python's own values.

They draw on `script_value_programs`, and add what surrounds tensors in code of users: lists and dictionaries of
modules, exported methods, functions that return early, ``enumerate`` and ``zip``, refinement of types, texts, lists of
numbers.
"""

from __future__ import annotations

from script_value_parts import Drawn
from script_value_programs import PARAMETERS, ValueProgram

_HEAD = """from typing import NamedTuple, Tuple, Union
import math


class Pair(NamedTuple):
    value: torch.Tensor
    count: int


def halved(x: torch.Tensor, times: int) -> Tuple[torch.Tensor, int]:
    if times < 1:
        return x, 0
    done = 0
    for k in range(times):
        x = x * 0.5
        done += 1
        if bool(x.abs().sum() < 1.0):
            return x + k, done
    return x, done


def described(x: Optional[torch.Tensor], name: str = "none") -> str:
    if x is None:
        return name
    return f"{name} of {x.dim()} axes"


"""
_MODULE = """class Scaled(torch.nn.Module):
    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x):
        self.seen += x.detach().sum(0)
        return x * self.factor


class Program(torch.nn.Module):
    seen: List[int]
    kept: Optional[torch.Tensor]

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([0.5, -1.0, 2.0]))
        self.register_buffer("total", torch.zeros(3))
        self.hidden = torch.ones(3)
        self.calls = 0
        self.seen = []
        self.kept = None
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Tanh(), Scaled(0.5)])
        self.heads = torch.nn.ModuleDict({{"a": torch.nn.Linear(3, 3, bias=False), "b": torch.nn.ReLU()}})
        self.names = ["a", "b"]

    @torch.jit.export
    def scaled(self, x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        self.calls += 1
        return x * factor + self.hidden

    @torch.jit.unused
    def shown(self, x):
        print(x)

    def forward(self, {parameters}):
{body}
"""


class UserProgram(ValueProgram):
    """One program, statement by statement."""

    def statement(self) -> None:
        """One statement, of these or of those of `ValueProgram`."""
        if self._left <= 0 or self._chance(0.35):
            super().statement()
            return
        self._left -= 1
        statements = [
            *(self._helper, self._named, self._texts, self._numbers, self._number_list, self._slices, self._choice),
            *(self._constant_loop, self._nested, self._mathematics, self._table_of, self._kept_optional),
        ]
        if self._depth < 4:
            statements += [self._enumerated, self._zipped, self._item_loop, self._refined]
        if self._depth < 3 + self.is_module:
            statements += [self._left_early]
        if self.is_module:
            statements += [self._modules, self._modules, self._method, self._remembered]
        self.random.choice(statements)()

    def _helper(self) -> None:
        a, b = self.fresh("t"), self.fresh("n")
        self.emit(f"{a}, {b} = halved({self.pick('f', 'm')}, {self.int_()})")
        self.tensors.append(Drawn(a, "f", "m"))
        self.ints.append(b)

    def _named(self) -> None:
        name = self.fresh("q")
        self.emit(f"{name} = Pair({self.tensor('f', 'm', 1)}, {self.int_()})")
        self.pairs.append(name)
        self.ints.append(f"{name}.count")
        self.tensors.append(Drawn(f"{name}.value", "f", "m"))

    def _texts(self) -> None:
        name = self.fresh("g")
        text = self.random.choice(self.texts)
        self.emit(
            f"{name} = "
            + self.random.choice(
                [
                    f"described(b, {text})",
                    f"'-'.join([{text}, mode])",
                    f"{text}.replace('a', 'z')",
                    f"'{{}}/{{}}'.format(n, {text})",
                    f"f'{{n}} {{{self.random.choice(['mode', 'flag', 'len(parts)'])}}}'",
                    f"'%d %s' % (n, {text})",
                    f"{text} if flag else mode",
                    f"str(n) + {text}",
                    f"{text}[0:1]",
                    f"{text}.strip().title()",
                ]
            )
        )
        self.texts.append(name)
        self.ints += [f"len({name})", f"int({name}.startswith('a'))"]

    def _numbers(self) -> None:
        name = self.fresh("n")
        a, b, c = self.int_(), self.int_(), self.random.choice(self.floats)
        kind, text = self.random.choice(
            [
                ("i", f"abs({a}) // (abs({b}) + 1)"),
                ("i", f"{a} % (abs({b}) + 2)"),
                ("i", f"({a}) ** 2"),
                ("i", f"min({a}, {b}, 3)"),
                ("i", f"int({c} * 10)"),
                ("i", f"({a} if {c} > 0 else {b})"),
                ("i", f"({a} << 1) | ({b} & 7)"),
                ("i", f"int(math.ceil({c} * 3))"),
                ("i", f"len(str({a}))"),
                ("f", f"float({a}) / (abs({b}) + 1)"),
                ("f", f"max({c}, 0.25)"),
                ("f", f"round({c})"),
                ("f", f"abs({c}) ** 0.5"),
                ("f", f"({a} + {c}) / 2"),
                ("b", f"0 < {a} < 5"),
                ("b", f"{a} in [1, 2, 3]"),
                ("b", f"bool({a}) and {c} > 0"),
                ("b", f"not ({a} == {b} or flag)"),
            ]
        )
        self.emit(f"{name} = {text}")
        {"i": self.ints, "f": self.floats, "b": self.bools}[kind].append(name)

    def _mathematics(self) -> None:
        name, c = self.fresh("n"), self.random.choice(self.floats)
        text = self.random.choice(["sqrt(abs({}))", "exp(-abs({}))", "log(abs({}) + 1)", "tanh({})", "floor({}) * 1.0"])
        self.emit(f"{name} = float(math.{text.format(c)})")
        self.floats.append(name)

    def _number_list(self) -> None:
        name = self.fresh("e")
        self.emit(
            f"{name} = "
            + self.random.choice(
                [
                    f"[{self.int_()}, {self.int_()}, n]",
                    f"[at * 2 for at in range(abs({self.int_()}) % 5)] + [1]",
                    f"sorted([{self.int_()}, n, 2])",
                    "list(x.shape)",
                    "x.size()",
                    f"[n] * (abs({self.int_()}) % 3 + 1)",
                ]
            )
        )
        for _ in range(self.random.randrange(3)):
            self.emit(
                self.random.choice(
                    [
                        f"{name}.append({self.int_()})",
                        f"{name}[0] = {self.int_()}",
                        f"{name}.reverse()",
                        f"{name}.extend([n, 1])",
                        f"{name}.insert(0, 3)",
                        f"{name} += [{self.int_()}]",
                        f"{name} = {name}[::-1]",
                        f"{name}.sort()",
                    ]
                )
            )
        self.ints += [f"sum({name})", f"max({name})", f"min({name})", f"{name}[-1]", f"len({name}[1:])"]
        self.ints.append(f"{name}.count(1)")
        self.bools.append(f"({self.int_()} in {name})")

    def _slices(self) -> None:
        shape, text = self.random.choice(
            [
                ("m", "{}[...]"),
                ("r", "{}[0, :]"),
                ("m", "{}[:, [2, 0, 1]]"),
                ("m", "{}[:, :-1].sum(1, keepdim=True) + {}"),
                ("m", "{}[::1, 0:None]"),
                ("c", "{}[..., -1:]"),
                ("r", "{}.mean(0)[None][0]"),
                ("m", "torch.cat([{}[1:], {}[:1]], 0)"),
                ("m", "{}.unbind(1)[1].unsqueeze(1) + {}"),
                ("m", "{}.transpose(0, 1).contiguous().t()"),
                ("m", "torch.stack({}.split(1, 1), 2).squeeze(1)"),
                ("m", "{}.masked_fill({} > 1.0, 0.0)"),
                ("r", "{}.sum(0)[torch.tensor([1, 1, 0])]"),
            ]
        )
        self.keep("f", shape, text.replace("{}", self.pick("f", "m")))

    def _choice(self) -> None:
        self.keep("f", "m", f"({self.tensor('f', 'm', 1)} if {self.condition()} else {self.pick('f', 'm')})")

    def _constant_loop(self) -> None:
        total = self.keep("f", "r", "torch.zeros(3, dtype=x.dtype)")
        values = self.random.choice(["(1, 2, 3)", "[0.5, 2.0]", "[w, w * 2]", "(w, x[0] * 1.0)"])
        self.emit(f"for part in {values}:")
        self.emit(f"    {total.name} = {total.name} + part * {self.pick('f', 'r')}")

    def _nested(self) -> None:
        a, b, c = self.fresh("t"), self.fresh("n"), self.fresh("t")
        self.emit(f"({a}, {b}), {c} = ({self.tensor('f', 'm', 1)}, {self.int_()}), {self.pick('f', 'r')} * 1.0")
        self.tensors += [Drawn(a, "f", "m"), Drawn(c, "f", "r")]
        self.ints.append(b)

    def _table_of(self) -> None:
        name = self.fresh("d")
        self.emit(
            f"{name} = "
            + self.random.choice(
                [
                    f"{{str(at): {self.pick('f', 'r')} * at for at in range(3)}}",
                    "{key: value * 2 for key, value in table.items()}",
                    "table.copy()",
                    f'{{"a": {self.pick("f", "r")}}}',
                ]
            )
        )
        if self._chance(0.5):
            self.emit(f'{name}["new"] = {self.tensor("f", "r", 1)}')
        key = self.random.choice(['"a"', '"new"', '"0"', "mode"])
        target = self.keep("f", "r", self.pick("f", "r") + " * 1.0")
        with self.under(f"if {key} in {name}:"):
            self.emit(f"{target.name} = {target.name} + {name}[{key}]")
        self.ints.append(f"len({name})")

    def _kept_optional(self) -> None:
        name = self.fresh("o")
        self.emit(f"{name}: Optional[int] = None")
        with self.under(f"if {self.random.choice(['flag', 'n > 2', 'x.size(0) > 4'])}:"):
            self.emit(f"{name} = {self.int_()}")
        value = self.fresh("n")
        self.emit(f"{value} = {name} if {name} is not None else -1")
        self.ints.append(value)

    def _enumerated(self) -> None:
        index, one = self.fresh("i"), self.fresh("t")
        total = self.keep("f", "m", self.pick("f", "m") + " * 1.0")
        with self.under(f"for {index}, {one} in enumerate({self.random.choice([*self.lists, 'parts'])}):"):
            self.ints.append(index)
            self.tensors.append(Drawn(one, "f", "m"))
            may_grow, self._may_grow = self._may_grow, False
            self.emit(f"{total.name} = {total.name} + {one}[:1] * {index}")
            self._statements(2)
            self._may_grow = may_grow

    def _zipped(self) -> None:
        a, k = self.fresh("t"), self.fresh("i")
        total = self.keep("f", "r", self.pick("f", "r") + " * 1.0")
        other = self.random.choice(["range(len(parts))", "[2, 5]", "[n, n + 1, n]"])
        with self.under(f"for {a}, {k} in zip(parts, {other}):"):
            self.ints.append(k)
            self.tensors.append(Drawn(a, "f", "m"))
            may_grow, self._may_grow = self._may_grow, False
            self.emit(f"{total.name} = {total.name} + {a}.sum(0) * {k}")
            self._statements(1)
            self._may_grow = may_grow

    def _item_loop(self) -> None:
        value = self.keep("f", "r", f"{self.pick('f', 'r')}.abs().clamp(max=50.0) + 1.0")
        count = self.fresh("w")
        self.emit(f"{count} = 0")
        limit = self.random.choice(["1.5", "3.0", "0.9"])
        with self.under(f"while {value.name}.max().item() > {limit} and {count} < 9:"):
            self.emit(f"{value.name} = {value.name} * 0.5")
            self.emit(f"{count} += 1")
        self.ints.append(count)

    def _refined(self) -> None:
        target = self.keep("f", "r", self.pick("f", "r") + " * 1.0")
        with self.under(self.random.choice(["if b is not None and flag:", "if b is not None:"])):
            self.emit(f"{target.name} = {target.name} + b * {self.int_()}")
        if self._chance(0.5):
            with self.under(f"elif {self.condition()}:"):
                self.emit(f"{target.name} = {target.name} - 1.0")

    def _left_early(self) -> None:
        with self.under(f"if {self.random.choice(['n > 3', 'x.size(0) == 5', 'mode == ' + repr('b')])}:"):
            self.emit("raise ValueError(f'not for {n} of {mode}')" if self._chance(0.3) else f"n = {self.int_()}")

    # --- modules --------------------------------------------------------------------------------

    def _modules(self) -> None:
        target = self.keep("f", "m", self.pick("f", "m") + ".float() * 1.0")
        self.tensors.pop()
        choice = self.random.randrange(4)
        if choice == 0:
            with self.under("for layer in self.layers:"):
                self.emit(f"{target.name} = layer({target.name})")
        elif choice == 1:
            with self.under("for at, layer in enumerate(self.layers):"):
                self.emit(f"if at != {self.random.randrange(3)}:")
                self.emit(f"    {target.name} = layer({target.name}) + at")
        elif choice == 2:
            with self.under("for name, head in self.heads.items():"):
                self.emit(f"if name in self.names and {self.condition()}:")
                self.emit(f"    {target.name} = {target.name} + head({target.name})")
        else:
            self.emit(f'{target.name} = self.heads["a"](self.layers[2]({target.name}))')
        self.keep("f", "m", f"{target.name}.to(x.dtype)")

    def _method(self) -> None:
        self.keep("f", "m", f"self.scaled({self.pick('f', 'm')}{self.random.choice(['', ', 0.5', ', factor=c'])})")

    def _remembered(self) -> None:
        if self._chance(0.5):
            self.emit("kept = self.kept")
            with self.under("if kept is None or kept.dtype != x.dtype:"):
                self.emit("kept = torch.zeros(3, dtype=x.dtype)")
            self.emit(f"self.kept = kept * 0.5 + {self.pick('f', 'r')}")
        else:
            with self.under(f"if {self.condition()}:"):
                changes = ["self.calls += 2", "self.hidden = self.hidden * 0.5", "self.seen.clear()"]
                self.emit(self.random.choice(changes))

    def result(self) -> str:
        """What the program returns: that of `ValueProgram`, or a named tuple."""
        names = [pair for pair in self.pairs if pair.startswith("q")]
        return self.random.choice(names) if names and self._chance(0.5) else super().result()


def user_program(seed: int) -> str:
    """The text of a function ``program``, or of a module ``Program``, with what they use."""
    drawn = UserProgram(seed)
    for _ in range(drawn.random.randrange(3, 10)):
        drawn.statement()
    drawn.emit(f"return {drawn.result()}")
    body = "\n".join(drawn.lines)
    if drawn.is_module:
        return _HEAD + _MODULE.format(parameters=PARAMETERS, body=body)
    return f"{_HEAD}def program({PARAMETERS}):\n{body}\n"


__all__ = ["UserProgram", "user_program"]
