"""Functions in many styles of Python, most of them with statements that a trace may record."""

# ruff: noqa

import contextlib

G = 3


def f_for(n):
    s = 0
    for i in range(n):
        s += i
    return s


def f_for_else(n):
    for i in range(n):
        if i == 7:
            break
    else:
        return -1
    return i


def f_while(n):
    k = 0
    while k * k < n:
        k += 1
        if k == 5:
            continue
        if k > 100:
            break
    return k


def f_while_else(n):
    while n > 0:
        n -= 1
    else:
        n = 42
    return n


def f_elif(x):
    if x < 0:
        y = -1
    elif x == 0:
        y = 0
    else:
        y = 1
    return y


def f_early(x):
    for i in range(10):
        if i > x:
            return i
    return None


def f_nested(x):
    def g(a, b=2):
        if a > b:
            return a
        return b

    return g(x) + g(x, 5)


def make_closure():
    c = 10

    def f_closure(x):
        nonlocal c
        if x > 0:
            c += x
        return c

    return f_closure


f_closure = make_closure()


class A:
    def __init__(self):
        self.v = 1
        self.l = [1]
        self.d = {}

    def m(self, x):
        if x > 0:
            self.v += x
        for i in range(2):
            self.l.append(i)
            self.d["k"] = i
        return self.v, self.l, self.d


def f_method(x):
    return A().m(x)


def f_defaults(x, y=G, *args, z=4, **kw):
    if x > y:
        return x
    return y + z + len(args) + len(kw)


def f_comp(n):
    a = [i * i for i in range(n) if i % 2]
    b = {i: j for i, j in enumerate(a)}
    return a, b, sum(x for x in a)


def f_try(x):
    try:
        if x > 0:
            raise ValueError("a")
        r = 1
    except ValueError as e:
        r = 2
    finally:
        x = 0
    return r


def f_try_loop(n):
    for i in range(n):
        try:
            if i == 2:
                continue
            if i == 4:
                break
        finally:
            n += 1
    return n


def f_with(x):
    with contextlib.suppress(ValueError):
        for i in range(x):
            if i == 2:
                raise ValueError
            x += 1
    return x


def f_with_return(x):
    with contextlib.suppress(ValueError):
        if x > 1:
            return 5
    return x


def f_bool(a, b):
    return a and b or not a


def f_chain(a):
    return 0 < a < 10 != 5


def f_ifexp(a):
    return 1 if a else 2


def f_walrus(n):
    s = 0
    while (n := n - 1) > 0:
        s += n
    return s


def f_match(x):
    match x:
        case 0:
            return "zero"
        case [a, b]:
            return a + b
        case _:
            return "other"


def f_undef(x):
    if x > 0:
        y = 1
    return y


def f_del(x):
    y = x
    if x > 0:
        del y
    return x


def f_global(x):
    global G
    if x > 0:
        G = G + x
    return G


def f_assert(x):
    assert x > 0, "bad"
    return x


def f_starred(x):
    a, *b = [x, x, x]
    for i, (p, q) in enumerate([(1, 2)]):
        b.append(p + q + i)
    return a, b


def f_gen(n):
    for i in range(n):
        yield i


def f_lambda(x):
    g = lambda a: a + 1 if a > 0 else a
    return g(x)


def f_annot(x: int) -> int:
    y: int = x
    if y > 2:
        y -= 1
    return y


def f_fstring(x):
    if x > 0:
        s = f"{x=:>4} {x!r}"
    else:
        s = ""
    return s


def f_posonly(a, /, b, *, c=1):
    if a > b:
        return c
    return a


def f_subscript(a):
    L = [0] * 5
    for i in range(5):
        L[i] += i
        L[i] = L[i] * 2
    return L


def f_error(x):
    y = 0
    for i in range(3):
        if i == x:
            y = 1 // y
    return y


def f_excstar(x):
    try:
        if x > 0:
            raise ExceptionGroup("g", [ValueError(1)])
    except* ValueError:
        x = 7
    return x


def f_super(x):
    return B().m(x)


class Base:
    def m(self, x):
        return x


class B(Base):
    def m(self, x):
        if x > 0:
            return super().m(x) + 1
        return 0


def f_early(a):
    if a < 0:
        return "negative"
    b = a + 1
    if b > 3:
        b = b * 2
        if b > 10:
            return b
        return -b
    elif b == 1:
        pass
    else:
        return [b]
    return b, a


def f_early_none(a):
    if a:
        if a > 3:
            return
        a = a + 1
    else:
        return None
    return a


def f_early_twice(a):
    # The rest follows on both sides of the second branch.
    if a < 0:
        a = a - 1
        if a < -5:
            return 1
    else:
        a = a + 1
    return a * 2


def f_early_in_loop(a):
    for k in range(a):
        if k == 3:
            return k
    if a == 2:
        return "two"
    return "end"


def f_early_try(a):
    try:
        if a > 1:
            return 1 // (a - 2)
    except ZeroDivisionError:
        return "zero"
    finally:
        a = 9
    return a


def f_early_raise(a):
    if a > 2:
        raise ValueError(a)
    if a == 0:
        return 0
    return a


def f_nobody_returns(a):
    if a:
        a = 3
    b = [a]
    b.append(4)


def f_else_of_loop(a):
    found = []
    for k in range(4):
        if k == a:
            break
        found.append(k)
    else:
        found.append("none")
        for j in range(3):
            if j == 1:
                continue
            found.append(j)
        else:
            found.append("end")
    while a > 0:
        a = a - 2
        if a == 3:
            break
    else:
        return found, a
    return found


def f_return_of_loops(a):
    for i in range(4):
        for j in range(4):
            if i * j == a + 3:
                return i, j
            if i + j > 5:
                return "far", i
        else:
            if i == a:
                return "row", i
    while a < 4:
        a = a + 1
        if a == 3:
            continue
        if a > 3:
            return [a]
    else:
        a = 0
    if a:
        return "end"
    return a


def f_return_in_with(a):
    import contextlib

    for k in range(3):
        with contextlib.nullcontext():
            if k == a:
                return k
    return None


def f_return_at_once(a):
    for k in range(a):
        return k
    return "none"
