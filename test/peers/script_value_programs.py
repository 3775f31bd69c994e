"""Random programs in TorchScript on values of all kinds: dtypes, ranks, views, containers, state, effects on arguments.

`script_programs` draws deep control flow on float32 matrices; these programs are shallow, and draw what that leaves
out: tensors of integers and booleans, tensors without axes, views that are written to, arguments that are written to,
lists, dictionaries, tuples and optional values as arguments, between statements and as results, attributes of modules.
"""

from __future__ import annotations

from script_value_parts import BINARY, PLACES, VIEWS, WRITES, Drawn, ValueExpressions


class ValueProgram(ValueExpressions):
    """One program, statement by statement."""

    # --- statements -----------------------------------------------------------------------------

    def statement(self) -> None:
        """One statement, with what it holds, as long as there are some left."""
        if self._left <= 0:
            return
        self._left -= 1
        statements = [
            *[self._bind] * 6,
            *(
                self._rebind,
                self._write,
                self._write_place,
                self._view_written,
                self._number,
                self._list,
                self._list_use,
            ),
            *(self._dict, self._tuple, self._optional, self._text, self._unpack, self._item),
        ]
        if self._depth < 4:
            statements += [self._if, self._if, self._for, self._while, self._raise, self._comprehension]
        if self.is_module:
            statements += [self._state, self._state]
        self.random.choice(statements)()

    def _bind(self) -> None:
        kind, shape = self.random.choice("fffibb"), self.random.choice("mmmcrs")
        self.keep(kind, shape, self.tensor(kind, shape))

    def _rebind(self) -> None:
        own = [t for t in self.tensors if t.name.startswith("t") and t.name[1:].isdigit()]
        if own:
            target = self.random.choice(own)
            self.emit(f"{target.name} = {self.tensor(target.kind, target.shape)}")

    def _target(self) -> Drawn | None:
        """A tensor that may be written."""
        own = [t for t in self.tensors if t.name.startswith("t") and t.name[1:].isdigit()]
        if self.writes and self._chance(0.5):
            own = [t for t in self.tensors if not t.name.startswith("self.w")]
        return self.random.choice(own) if own else None

    def _write(self) -> None:
        target = self._target()
        if target is not None:
            text = self.random.choice(WRITES[target.kind])
            if "[" in target.name and "=" in text:  # of an element, which the operator sets
                text = "{}.zero_()" if target.kind != "b" else "{}.logical_not_()"
            self.emit(text.format(target.name, self.tensor(target.kind, target.shape, 1)))

    def _write_place(self) -> None:
        target = self._target()
        if target is not None and PLACES[target.shape]:
            place = self.random.choice(PLACES[target.shape])
            value = self.pick(target.kind, "s")
            if self._chance(0.5):
                value = {"f": self.random.choice(self.floats), "i": "3", "b": "True"}[target.kind]
            sign = self.random.choice(["=", "+=", "*="]) if target.kind != "b" else "="
            self.emit(f"{target.name}{place} {sign} {value}")

    def _view_written(self) -> None:
        """A view is written, behind which its base is read."""
        target = self._target()
        if target is not None and target.shape in "mr":
            shape, text = self.random.choice([way for way in VIEWS[target.shape] if "flip" not in way[1]])
            view = self.keep(target.kind, shape, text.format(target.name))
            self.emit(self.random.choice(WRITES[target.kind]).format(view.name, self.pick(target.kind, shape)))
            self.keep(
                target.kind, target.shape, self.random.choice(BINARY[target.kind]).format(target.name, target.name)
            )

    def _number(self) -> None:
        name = self.fresh("n")
        if self._chance(0.5):
            self.emit(f"{name} = {self.int_()}")
            self.ints.append(name)
        else:
            self.emit(f"{name} = {self.random.choice(self.floats)} * {self.random.uniform(-1, 1):.2f}")
            self.floats.append(name)

    def _item(self) -> None:
        name, choice = self.fresh("n"), self.random.randrange(3)
        if choice == 0:
            self.emit(f"{name} = float({self.tensor('f', 's', 1)})")
            self.floats.append(name)
        elif choice == 1:
            self.emit(f"{name} = int({self.tensor('i', 's', 1)}.clamp(-3, 3))")
            self.ints.append(name)
        else:
            self.emit(f"{name} = bool({self.tensor('b', 's', 1)})")
            self.bools.append(name)

    def _list(self) -> None:
        name = self.fresh("l")
        self.emit(f"{name} = [{self.tensor('f', 'm', 1)}, {self.pick('f', 'm')}]")
        self.lists.append(name)

    def _list_use(self) -> None:
        name = self.random.choice([*self.lists, "parts"])
        if self._chance(0.6):
            if self._may_grow and (name != "parts" or self.writes):
                one = self.tensor("f", "m", 1)
                self.emit(
                    self.random.choice(
                        [
                            f"{name}.append({one})",
                            f"{name}.insert(0, {one})",
                            f"{name}[0] = {one}",
                            f"{name} += [{one}]",
                            f"{name}.reverse()",
                            f"{name}.extend([{one}])",
                        ]
                    )
                )
        else:
            shape, text = self.random.choice(
                [
                    ("m", "torch.stack({}).sum(0)"),
                    ("r", "torch.cat({}, 0).sum(0)"),
                    ("m", "{}[-1]"),
                    ("m", "{}[0:1][0]"),
                    ("m", "torch.cat({}, 1)[:, 0:3]"),
                ]
            )
            self.keep("f", shape, text.format(name))

    def _dict(self) -> None:
        name = self.random.choice([*self.dicts, "table"])
        if self._chance(0.3):
            name = self.fresh("d")
            self.emit(f'{name} = {{"a": {self.tensor("f", "r", 1)}, "b": {self.pick("f", "r")}}}')
            self.dicts.append(name)
        elif self._chance(0.4) and (name != "table" or self.writes):
            self.emit(f'{name}["{self.random.choice("abz")}"] = {self.tensor("f", "r", 1)}')
        elif self._chance(0.5):
            self.keep("f", "r", f'{name}["a"] + {self.pick("f", "r")}')
        else:
            total = self.keep("f", "r", "torch.zeros(3, dtype=x.dtype)")
            with self.under(f"for key, value in {name}.items():"):
                self.emit(f"{total.name} = {total.name} + value * len(key)")

    def _tuple(self) -> None:
        name = self.fresh("p")
        self.emit(f"{name} = ({self.tensor('f', 'm', 1)}, {self.int_()}, {self.pick('f', 's')})")
        self.pairs.append(name)
        self.ints.append(f"{name}[1]")
        self.tensors.append(Drawn(f"{name}[2]", "f", "s"))

    def _unpack(self) -> None:
        a, b, shape = self.fresh("t"), self.fresh("t"), self.random.choice("mr")
        text = {"m": "torch.max({}, 1, keepdim=True)", "r": "torch.min({}, 0)"}[shape].format(self.pick("f", shape))
        self.emit(f"{a}, {b} = {text}")
        small = {"m": "c", "r": "s"}[shape]
        self.tensors += [Drawn(a, "f", small), Drawn(b, "i", small)]

    def _optional(self) -> None:
        if self._chance(0.5):
            target = self.keep("f", "r", self.tensor("f", "r", 1))
            with self.under("if b is not None:"):
                self.emit(f"{target.name} = {target.name} * b")
        else:
            name = self.fresh("o")
            self.emit(f"{name} = torch.jit.annotate(Optional[torch.Tensor], None)")
            with self.under(f"if {self.condition()}:"):
                self.emit(f"{name} = {self.tensor('f', 'm', 1)}")
            target = self.keep("f", "m", self.tensor("f", "m", 1))
            with self.under(f"if {name} is not None:"):
                self.emit(f"{target.name} = {target.name} + {name}")

    def _text(self) -> None:
        name = self.fresh("g")
        self.emit(
            f"{name} = {self.random.choice(['mode', 'mode.upper()', 'mode + mode', str(chr(34) + 'b' + chr(34))])}"
        )
        self.texts.append(name)

    def _if(self) -> None:
        with self.under(f"if {self.condition()}:"):
            self._statements(2)
        if self._chance(0.6):
            with self.under("else:"):
                self._statements(2)

    def _statements(self, most: int) -> None:
        before = len(self.lines)
        for _ in range(self.random.randrange(1, most + 1)):
            self.statement()
        if len(self.lines) == before:
            self.emit("pass")

    def _for(self) -> None:
        index = self.fresh("i")
        if self._chance(0.25):
            one, self._may_grow = Drawn(index, "f", "m"), False  # or the loop would have no end
            with self.under(f"for {index} in {self.random.choice([*self.lists, 'parts'])}:"):
                self.tensors.append(one)
                self._statements(2)
            self._may_grow = True
            return
        bound = self.random.choice(["n", "x.size(0)", "3", "len(parts)", "x.size(1)", "2 * n", "n, 0, -1", "0, 9, 4"])
        with self.under(f"for {index} in range({bound}):"):
            self.ints.append(index)
            self._statements(2)
            if self._chance(0.3):
                self.emit(f"if {self.condition()}:")
                self.emit("    " + self.random.choice(["break", "continue"]))
                self._statements(1)

    def _while(self) -> None:
        count = self.fresh("w")
        self.emit(f"{count} = 0")
        with self.under(f"while {count} < {self.random.randrange(2, 5)} and ({self.condition()}):"):
            self._statements(2)
            self.emit(f"{count} += 1")
        self.ints.append(count)

    def _comprehension(self) -> None:
        name, index = self.fresh("l"), self.fresh("i")
        source = self.random.choice([f"range({self.random.choice(['n', '3', 'len(parts)'])})", "parts"])
        one = f"{index} * 0.5" if source == "parts" else f"{self.pick('f', 'm')} * {index}"
        self.emit(f"{name} = [{one} for {index} in {source}]")
        self.lists.append(name)

    def _raise(self) -> None:
        if self._chance(0.4):
            self.emit(f"assert {self.condition()} or n < 90, 'nothing like {{}}'.format({self.int_()})")
        else:
            with self.under(f"if {self.condition()} and n > 90:"):
                self.emit("raise ValueError('too large')")

    def _state(self) -> None:
        self.emit(
            self.random.choice(
                [
                    "self.calls += 1",
                    f"self.calls = {self.int_()}",
                    f"self.hidden = {self.tensor('f', 'r', 1)}",
                    f"self.total.add_({self.pick('f', 'r')})",
                    "self.total.mul_(0.5)",
                    f"self.seen.append({self.int_()})" if self._chance(0.3) else "self.calls = self.calls * 2",
                ]
            )
        )

    def result(self) -> str:
        """The text of what the program returns."""
        parts = []
        for _ in range(self.random.randrange(1, 4)):
            names = [t.name for t in self.tensors if t.name.startswith("t") and t.name[1:].isdigit()]
            kinds = [
                *([self.random.choice(names)] * 4 if names else []),
                *(self.tensor("f", "m", 1), self.tensor("i", "s", 1), self.int_(), self.random.choice(self.floats)),
                *(
                    self.random.choice(self.bools),
                    f"[{self.pick('f', 'm')}, {self.pick('f', 'm')}]",
                    "parts",
                    "x.shape",
                ),
                *(
                    f'{{"k": {self.pick("f", "r")}}}',
                    "b",
                    self.random.choice(self.texts),
                    f"({self.pick('f', 's')}, {self.int_()})",
                ),
                *self.lists,
                *self.dicts,
                *self.pairs,
            ]
            parts.append(self.random.choice(kinds))
        return ", ".join(parts)


PARAMETERS = (
    "x: torch.Tensor, y: torch.Tensor, w: torch.Tensor, k: torch.Tensor, m: torch.Tensor, s: torch.Tensor, "
    "parts: List[torch.Tensor], table: Dict[str, torch.Tensor], n: int, c: float, flag: bool = False, "
    'b: Optional[torch.Tensor] = None, mode: str = "a"'
)
_MODULE = """class Program(torch.nn.Module):
    seen: List[int]

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([0.5, -1.0, 2.0]))
        self.register_buffer("total", torch.zeros(3))
        self.hidden = torch.ones(3)
        self.calls = 0
        self.seen = []

    def forward(self, {parameters}):
{body}
"""


def value_program(seed: int) -> str:
    """The text of a function ``program``, or of a module ``Program``."""
    drawn = ValueProgram(seed)
    for _ in range(drawn.random.randrange(3, 9)):
        drawn.statement()
    drawn.emit(f"return {drawn.result()}")
    body = "\n".join(drawn.lines)
    if drawn.is_module:
        return _MODULE.format(parameters=PARAMETERS, body=body)
    return f"def program({PARAMETERS}):\n{body}\n"
