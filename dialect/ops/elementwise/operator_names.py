"""The ops that Python's operators mean, by the names of their methods without underscores."""

OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_div",
    "mod": "remainder",
    "pow": "pow",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "shift_left",
    "rshift": "shift_right",
}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
UNARY = {"neg": "neg", "pos": "positive", "abs": "abs", "invert": "bitwise_not"}
