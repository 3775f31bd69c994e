"""What ``type`` is to a traced function."""

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.importers.numpy.capture.tracer import trace
from profuse.dialect.importers.numpy.tracing.types_seen import traced_type


class Seen(Exception):
    pass


def seen(value):
    """What the traced stand-in of an argument is, by ``traced_type``."""

    def tell(x):
        raise Seen(traced_type(x))

    with pytest.raises(Seen) as told:
        trace(tell, (value,))
    return told.value.args[0]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (3, int),
        (2.5, float),
        (True, bool),
        (1j, complex),
        (np.ones(3), np.ndarray),
        (np.float32(2), np.float32),
        (np.ones(()), np.ndarray),
        (np.int8(1), np.int8),
    ],
)
def test_the_class_of_what_a_value_stands_for(value, kind):
    assert seen(value) is kind
    assert traced_type(value) is type(value)


def test_it_is_called_compared_and_named_as_type_is():
    def body(x, k, scale):
        total = 0.0
        if traced_type(k) is int and traced_type(k) in (int, float):
            total += traced_type(k)(2.7)
        if traced_type(x) is np.ndarray and traced_type(x.shape[0]) == int:  # noqa: E721
            total += 1
        name = traced_type(scale).__name__
        return x * total if name == "float" else x

    f = pf.jit(body)
    for n in (3, 4, 5, 6):
        np.testing.assert_array_equal(f(np.ones(n), 4, 0.5), np.full(n, 3.0))
        np.testing.assert_array_equal(f(np.ones(n), 4, 2), np.ones(n))
    assert f.state().counters["traces"] == 2


def test_elsewhere_it_is_type():
    made = traced_type("Made", (list,), {"size": 3})
    assert type(made) is type and made([1]) == [1] and made.size == 3
    assert isinstance(int, traced_type) and not isinstance(3, traced_type)

    class Meta(traced_type):
        pass

    assert issubclass(Meta, traced_type) and issubclass(type, traced_type)
    assert not issubclass(int, traced_type)
    assert isinstance(Meta("Other", (), {}), Meta) and not isinstance(int, Meta)
    with pytest.raises(TypeError):
        traced_type()


def test_the_builtin_is_substituted_in_traced_functions():
    """`type` and `is` tell a traced function what they tell Python."""

    def f(x, k, flag):
        if type(x) is not np.ndarray or type(k) != int:  # noqa: E721
            return x * 0
        return x * (k if flag is True else -k) + isinstance(type(k), type)

    g = pf.jit(f, background=False)
    for flag in (True, False, True):
        for k in (2, 5):
            np.testing.assert_array_equal(g(np.ones(3), k, flag), f(np.ones(3), k, flag))


def test_methods_of_numbers():
    def f(x, n, y, z):
        if not hasattr(n, "shape") and hasattr(n, "bit_length"):
            return (x * n.bit_length() + y.as_integer_ratio()[1], x.shape[0].bit_length(), z.conjugate())
        return None

    jitted = pf.jit(f)
    for args in ((np.ones(5), 9, 0.25, 1j), (np.ones(3), 2, 0.5, 2j)):
        for a, b in zip(jitted(*args), f(*args), strict=True):
            np.testing.assert_array_equal(a, b)
            assert type(a) is type(b)
    with pytest.raises(AttributeError, match="'int' object has no attribute 'nothing'"):
        pf.jit(lambda n: n.nothing)(3)
