"""Random programs in TorchScript, as source text: loops, branches, lists, in-place operators, early returns."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import contextmanager

_STATEMENTS = 14  # the most of a program
_DEPTH = 4  # of blocks within blocks
_KINDS = ("tensor", "int", "float")
_UNARY = ("torch.tanh({})", "torch.sigmoid({})", "torch.softmax({}, 1)", "{}.clamp(-2.0, 2.0)", "{}.flip(0)")
_BINARY = ("({} + {})", "({} - {})", "({} * {}.mean(1, keepdim=True))", "({} / ({}.abs() + 1.0))", "({} - {}.amax(0))")
_PLACES = ("0", "-1", "n % 2", ":, 0", "1:", ":, ::2")
_WRITES = ("relu_()", "tanh_()", "sigmoid_()", "add_(1.0)", "mul_(0.5)", "clamp_(-1.0, 1.0)")
_BOUNDS = ("n", "x.size(0)", "3", "n + 1", "20", "x.size(1) - 1")


class Program:
    """One program.

    Args:
        seed: of its random choices.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self._depth, self._names, self._loops, self._left = 1, 0, 0, _STATEMENTS
        self.scopes = [{"tensor": ["x", "y"], "int": ["n"], "float": ["c"]}]

    # --- pieces ---------------------------------------------------------------------------------

    def emit(self, text: str) -> None:
        """Append a line."""
        self.lines.append("    " * self._depth + text)

    def pick(self, kind: str) -> str:
        """A name of this kind."""
        return self.random.choice([name for scope in self.scopes for name in scope[kind]])

    def new(self, kind: str, text: str) -> None:
        """Bind a new name."""
        name = self._fresh(kind[0])
        self.emit(f"{name} = {text}")
        self.scopes[-1][kind].append(name)

    def _fresh(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def _chance(self, p: float) -> bool:
        return self.random.random() < p

    @contextmanager
    def _within(self, **names: str):
        """A scope of its own, with these names."""
        self.scopes.append({kind: [names[kind]] if kind in names else [] for kind in _KINDS})
        yield
        self.scopes.pop()

    @contextmanager
    def _under(self, head: str):
        """Lines that are indented under one."""
        self.emit(head)
        self._depth += 1
        yield
        self._depth -= 1

    def _block(self, head: str, count: int) -> None:
        with self._within(), self._under(head):
            before = len(self.lines)
            for _ in range(count):
                self.statement()
            if len(self.lines) == before:
                self.emit("pass")

    def _owned(self) -> str:
        """A tensor that may be written: arguments are copied first."""
        name = self.pick("tensor")
        if name in ("x", "y"):
            self.emit(f"{name} = {name}.clone()")
        return name

    # --- expressions ----------------------------------------------------------------------------

    def tensor(self, depth: int = 2) -> str:
        """A tensor of the shape of the arguments."""
        choice = self.random.random()
        if depth == 0 or choice < 0.25:
            return self.pick("tensor")
        if choice < 0.5:
            return self.random.choice(_UNARY).format(self.tensor(depth - 1))
        a, b = self.tensor(depth - 1), self.tensor(depth - 1)
        if choice < 0.8:
            return self.random.choice(_BINARY).format(a, b)
        if choice < 0.9:
            return f"({a} * {self.scalar()})"
        return f"torch.where({a} > {self.scalar()}, {b}, {self.tensor(depth - 1)})"

    def scalar(self) -> str:
        """A number."""
        number, n, c = f"{self.random.uniform(-1, 1):.2f}", self.pick("int"), self.pick("float")
        return self.random.choice([n, c, number, f"float({n})", f"({c} * {number})"])

    def int_(self) -> str:
        """An int."""
        n, few = self.pick("int"), str(self.random.randrange(4))
        size = f"({self.pick('tensor')}.size({self.random.randrange(2)}) - 1)"
        return self.random.choice([f"({n} + {few})", size, f"({n} * 2)", f"({n} // 2)", f"({n} % 3)", few])

    def condition(self) -> str:
        """A condition, of sizes, numbers or contents."""
        n, c, x = self.pick("int"), self.pick("float"), self.pick("tensor")
        few, number = self.random.randrange(4), f"{self.random.uniform(-1, 1.5):.2f}"
        return self.random.choice(
            [
                f"bool({x}.sum() > {self.scalar()})",
                f"{n} > {few}",
                f"bool(({self.tensor(1)} > 0.0).any())",
                f"{c} < {number}",
                f"float({x}.max()) > {number}",
                f"{n} > {few} and bool({x}.mean() > 0.0)",
            ]
        )

    # --- statements -----------------------------------------------------------------------------

    def statement(self) -> None:
        """One statement, with what it holds, as long as there are some left."""
        if self._left <= 0:
            return
        self._left -= 1
        plain: list[Callable[[], None]] = [
            *[lambda: self.new("tensor", self.tensor())] * 3,
            *[lambda: self.emit(f"{self.pick('tensor')} = {self.tensor()}")] * 2,
            lambda: self.emit(f"{self._owned()} {self.random.choice(['+=', '*=', '-='])} {self.tensor(1)}"),
            lambda: self.emit(f"{self._owned()} {self.random.choice(['+=', '*=', '-='])} {self.scalar()}"),
            lambda: self.emit(f"{self._owned()}.{self.random.choice(_WRITES)}"),
            lambda: self.emit(f"{self._owned()}[{self.random.choice(_PLACES)}] = {self.scalar()}"),
            lambda: self.new("int", self.int_()),
            lambda: self.new("float", f"float({self.pick('tensor')}.mean()) + 0.0"),
            lambda: self.new("float", f"{self.scalar()} * 0.5"),
            self._accumulated,
        ]
        nested = [*[self._if] * 3, self._return] if self._depth < _DEPTH else []
        loops = [*[self._for] * 3, self._while, *[self._list] * 2] if self._depth < _DEPTH and self._loops < 2 else []
        self.random.choice([*plain, *nested, *loops])()

    def _accumulated(self) -> None:
        name = self._fresh("s")
        self.emit(f"{name} = {self.pick('tensor')}.sum()")
        self.emit(f"{name} += {self.scalar()}")
        self.new("tensor", f"{self.pick('tensor')} + {name} * 0.1")

    def _if(self) -> None:
        self._block(f"if {self.condition()}:", self.random.randrange(1, 3))
        if self._chance(0.6):
            self._block("else:", self.random.randrange(1, 3))

    def _return(self) -> None:
        with self._under(f"if {self.condition()}:"):
            self.emit(f"return {self.tensor(1)} * 1.0, {self.scalar()} * 1.0")

    def _for(self) -> None:
        self._loops += 1
        index, bound = self._fresh("i"), self.random.choice(_BOUNDS)
        with self._within(int=index):
            head = f"for {index} in range({bound}):" if self._chance(0.7) else f"for {index} in range(1, {bound}, 2):"
            if self._chance(0.3):
                with self._under(head):
                    with self._under(f"if {self.condition()}:"):
                        self.emit(self.random.choice(["break", "continue"]))
                    self._block("if n > -1:", self.random.randrange(1, 4))
            else:
                self._block(head, self.random.randrange(1, 4))
        self._loops -= 1

    def _while(self) -> None:
        self._loops += 1
        count = self._fresh("w")
        self.emit(f"{count} = 0")
        head = f"while {count} < {self.random.randrange(2, 5)} and {self.condition()}:"
        with self._within(int=count), self._under(head):
            self._block("if n > -1:", self.random.randrange(1, 3))
            self.emit(f"{count} = {count} + 1")
        self._loops -= 1

    def _list(self) -> None:
        self._loops += 1
        name, index = self._fresh("l"), self._fresh("i")
        self.emit(f"{name} = torch.jit.annotate(List[torch.Tensor], [])")
        if self._chance(0.4):
            self.emit(f"{name}.append({self.tensor(1)} * 1.0)")
        with (
            self._within(int=index),
            self._under(f"for {index} in range({self.random.choice(['n', 'x.size(1)', '3'])}):"),
        ):
            self.statement()
            if self._chance(0.2):
                with self._under(f"if {self.condition()}:"):
                    self.emit(f"{name}.append({self.tensor(1)} * 0.5)")
            self.emit(f"{name}.append({self.tensor(1)} * {index})")
        self._loops -= 1
        joins = [
            f"torch.stack({name}).mean(0)",
            f"torch.stack({name}, 1).sum(1)",
            f"{name}[-1] + torch.cat({name}, 0)[0]",
        ]
        self.new("tensor", self.random.choice(joins))


def program(seed: int) -> str:
    """The text of a function ``program(x, y, n, c)``, whose results are a tensor and a float."""
    text = Program(seed)
    for _ in range(text.random.randrange(3, 8)):
        text.statement()
    terms = " + ".join(f"torch.tanh({name})" for name in text.scopes[0]["tensor"][-4:])
    text.emit(f"return {terms}, {text.pick('float')} + 0.0")
    return "\n".join(["def program(x: torch.Tensor, y: torch.Tensor, n: int, c: float):", *text.lines, ""])
