# ruff: noqa: E501, UP031
# fmt: off
"""Calls of every NumPy function that is traced, with every parameter of its signature.

Each text is evaluated with ``x`` of many ranks and dtypes, ``y`` of its shape and another dtype,
a mask ``m`` of its shape, and ``k``, a number.  ``{a|b}`` stands for either.
"""

import re

AXES = ", axis=0|, -1|, (0, 1)|, axis=(-1, 0)|, axis=()|, axis=None|, 2|, -4|, (0, 0)|, [0]|, True|, 1.0"
KEEP = ", keepdims=True|, axis=0, keepdims=True|, axis=(), keepdims=1|, keepdims=False"
DTYPE = ", dtype='f4'|, dtype='i2'|, dtype=bool|, dtype=complex|, dtype=None|, axis=0, dtype='u1'|, dtype='f8'|, dtype='f2'"
INITIAL = ", initial=2|, initial=1.5|, initial=-300|, initial=None|, axis=0, initial=1|, -1, initial=7, keepdims=True|, initial=np.float32(0.1)|, initial=True|, initial=1j|, initial=np.nan"
WHERE = ", where=True|, where=m|, where=False|, axis=0, where=m|, where=[True]"
LIKE = ", None|, 'i2'|, dtype=complex|, dtype=bool|, order='F'|, subok=False|, shape=3|, shape=(2, 0)|, shape=()|, shape=-1|, shape=None|, device='cpu'|, device='gpu'|, order='Z'|, 'i4', 'C', True, (2,)"
MADE = ", None|, 'i2'|, dtype=complex|, dtype=bool|, 'f4', 'F'|, order='C'|, order='Z'|, device='cpu'|, device='gpu'|, like=None"
OUT = "out=np.zeros_like(x)|out=None|out=np.zeros(3)|out=np.zeros(())|out=np.zeros(x.shape)|out=np.zeros(x.shape, 'f4')|out=np.zeros(x.shape, 'c16')|out=np.zeros(x.shape, 'i2')|out=np.zeros((2, *x.shape), x.dtype)|out=(np.zeros_like(x),)"
ROUT = ", out=np.zeros(())|, out=None|, axis=0, out=np.zeros(3)|, axis=0, out=np.zeros(x.shape[1:])|, 0, out=np.zeros(x.shape[1:], x.dtype)|, 0, out=np.zeros(x.shape[1:], 'i8')|, axis=0, keepdims=True, out=np.zeros((1, *x.shape[1:]), x.dtype)"


FUNCTIONS = {
    "zeros_like": ["np.zeros_like(x{%s})" % LIKE, "np.zeros_like({[1, 2]|2.5|[x, x]|k}{|, 'f4'|, shape=2})"],
    "ones_like": ["np.ones_like(x{%s})" % LIKE],
    "empty_like": ["np.empty_like(x{, None|, shape=0|, 'i2', shape=(2, 0)|, order='F', shape=0|, subok=False, shape=0|, device='cpu', shape=0}).shape"],
    "full_like": ["np.full_like(x, {2|2.5|-1|True|1j|300|x|y|k|[1, 2, 3]|np.nan|None|x.sum()})", "np.full_like(x, 2{%s})" % LIKE, "np.full_like(x, y{, 'f4'|, shape=(2, *x.shape)|, shape=2})"],
    "reshape": ["np.reshape(x, {-1|(-1,)|(1, -1)|()|(2, -1)|(0, -1)|x.size|(x.size, 1)|[-1, 2]|(-1, -1)|None|2.0|(1, 1, -1)})", "np.reshape(x, {-1|(1, -1)|(-1, 1)|(-1, 2)|(2, -1)}, {'C'|'F'|'A'|order='K'|order='Z'|None|order=None})", "np.reshape(x, {-1|(-1, 1)}, copy={None|True|False|1})"],
    "ravel": ["np.ravel(x{|, 'C'|, order='F'|, 'A'|, order='K'|, 'Z'|, None})"],
    "transpose": ["np.transpose(x{|, None|, (0,)|, (1, 0)|, axes=(-1, 0)|, [1, 0]|, (0, 0)|, (2, 0, 1)|, ()|, (0, 1, 2, 3)|, axes=0|, (1, 2)})"],
    "matrix_transpose": ["np.matrix_transpose(x)"],
    "linalg.matrix_transpose": ["np.linalg.matrix_transpose(x)"],
    "swapaxes": ["np.swapaxes(x, {0|-1|axis1=1|2|-4|1.0|True}, {axis2=0|axis2=-1|axis2=3|axis2=True})"],
    "moveaxis": ["np.moveaxis(x, {0|-1|2|(0, 1)|[1, 0]|()|source=0|(0, 0)|-4|1.0}, {destination=-1|destination=0|destination=(0, 1)|destination=[-1, 0]|destination=()|destination=3|destination=(1, 1)})"],
    "rollaxis": ["np.rollaxis(x, {0|1|-1|axis=2|-4|3|1.0}, {start=0|start=1|start=-1|start=2|start=3|start=4|start=-3|start=-4|start=1.0})", "np.rollaxis(x, 1)"],
    "squeeze": ["np.squeeze({x|x[None]|x[..., None, :]|x[None, ..., None]}{|, None|, 0|, axis=-1|, (0,)|, (0, -1)|, ()|, 2|, -4|, (0, 0)|, [0]|, 1.0})"],
    "expand_dims": ["np.expand_dims(x, {0|axis=-1|1|2|(0, 1)|[0, -1]|()|(0, 0)|-4|5|(0, 7)|1.0|True|None})"],
    "atleast_1d": ["np.atleast_1d({x|x, y|k|[1, 2]||x, 3, [4]})"],
    "atleast_2d": ["np.atleast_2d({x|x, y|k|[1, 2]||x, 3, [4]})"],
    "atleast_3d": ["np.atleast_3d({x|x, y|k|[1, 2]||x, 3, [4]})"],
    "lib.stride_tricks.sliding_window_view": ["np.lib.stride_tricks.sliding_window_view(x, {1|2|(2,)|(2, 2)|window_shape=[1, 2]|0|-1|9|x.shape|()}{|, 0|, axis=-1|, (0, 1)|, axis=(0, 0)|, 5|, None, subok=True|, writeable=False|, writeable=True})"],
    "broadcast_to": ["np.broadcast_to(x, {x.shape|(2, *x.shape)|shape=(2, 3, 4)|()|3|(3,)|-1|[3, 4]|(0, 3)|(4, 3, 3)|2.0}{|, subok=False|, subok=True})"],
    "broadcast_arrays": ["np.broadcast_arrays({x|x, y|x, 3|x, [1, 2, 3]|x, y[..., None]|x, np.ones((2, 1, 1, 1))|x, k}{|, subok=True|, subok=False})"],
    "flip": ["np.flip(x{|, None|, 0|, axis=-1|, (0, 1)|, ()|, [0]|, (0, 0)|, 2|, -4|, 1.0|, True})"],
    "fliplr": ["np.fliplr(x)"],
    "flipud": ["np.flipud(x)"],
    "rot90": ["np.rot90(x{|, 0|, 1|, k=2|, 3|, -1|, 5|, 1.5|, k=True})", "np.rot90(x, {1|k=2|3|0}, {(1, 0)|axes=(0, 1)|(0, 2)|(-1, -2)|[0, 1]|(0, 0)|(0,)|(0, 1, 2)|(0, 5)|axes=(0, -2)})"],
    "split": ["np.split(x, {1|2|3|4|0|-1|[1]|(1, 2)|[0, 9]|[]|[-1]|[2, 1]|np.array([1])|2.0|[1.0]|True|indices_or_sections=3}{|, axis=-1|, axis=1|, axis=2|, axis=-4|, axis=1.0})"],
    "array_split": ["np.array_split(x, {1|2|3|4|0|-1|[1]|(1, 2)|[0, 9]|[]|[-1]|[2, 1]|np.array([1])|2.0|2.5|True|indices_or_sections=3|7}{|, axis=-1|, axis=1|, axis=2|, axis=-4|, axis=1.0})"],
    "hsplit": ["np.hsplit(x, {1|2|3|0|[1]|(1, 2)|[0, 9]|indices_or_sections=3|2.0})"],
    "vsplit": ["np.vsplit(x, {1|2|3|0|[1]|(1, 2)|[0, 9]|indices_or_sections=3|2.0})"],
    "unstack": ["np.unstack(x{|, axis=0|, axis=-1|, axis=1|, axis=3|, axis=-4|, axis=None|, axis=1.0})"],
    "roll": ["np.roll(x, {0|1|-1|7|-10|1.7|(1, 2)|[1, 2]|(1,)|()|np.array([1, 2])|np.array(1)|2**70|True|shift=2|k|None}{|, 0|, axis=-1|, (0, 1)|, (0, 0)|, [0, -1]|, axis=None|, 3|, ()|, axis=(0,)|, 1.0})"],
    "diff": ["np.diff(x{|, 0|, 1|, n=2|, 3|, 5|, -1|, 1.0|, n=True}{|, axis=0|, axis=-2|, axis=2|, axis=-4|, axis=1.0|, axis=(0,)})", "np.diff(x, {prepend=0|append=1|prepend=1.5|prepend=x|append=x|prepend=0, append=2|axis=0, prepend=x[:1]|axis=0, append=[1]|prepend=k|append=np.int8(1)|n=2, prepend=x})"],
    "shape": ["np.shape({x|k|[1, 2]|[x, x]|3.0|[[1], [2]]})"],
    "size": ["np.size(x{|, None|, 0|, axis=-1|, axis=2|, -4|, (0, 1)|, ()|, [0]|, 1.0|, True|, (0, 0)})", "np.size({k|[1, 2]|[x, x]})"],
    "ndim": ["np.ndim({x|k|[1, 2]|[x, x]|3.0})"],
    "concatenate": ["np.concatenate({[x, y]|(x, x, y)|[x]|[]|x|[x, 1]|[x, [1, 2]]|[x, x[:1]]|[[1, 2], k]}{|, 0|, axis=-1|, axis=None|, axis=1|, axis=2|, -4|, axis=1.0|, axis=True})", "np.concatenate([x, y]{, dtype='f4'|, dtype='i2'|, dtype=bool|, dtype=complex|, dtype=None|, axis=None, dtype='f8'})", "np.concatenate([x, y], dtype='i2', casting={'unsafe'|'same_kind'|'safe'|'no'|'equiv'|'foo'|None})", "np.concatenate([x, y], casting={'unsafe'|'same_kind'|'safe'|'no'|'equiv'})", "np.concatenate([x, x], {0, np.zeros((2 * x.shape[0], *x.shape[1:]), x.dtype)|0, out=np.zeros((2 * x.shape[0], *x.shape[1:]))|out=None|out=np.zeros((2 * x.shape[0], *x.shape[1:]), 'i2')|out=np.zeros(3)|out=np.zeros(3), dtype='f8'|None, out=np.zeros(2 * x.size, x.dtype)})"],
    "stack": ["np.stack({[x, y]|(x, x, y)|[x]|[]|x|[x, 1]|[x, [1, 2]]|[k, 2]|[[1, 2], k]}{|, 0|, axis=-1|, axis=None|, axis=1|, axis=2|, -4|, axis=1.0|, axis=True})", "np.stack([x, y]{, dtype='f4'|, dtype='i2'|, dtype=bool|, dtype=complex|, dtype=None})", "np.stack([x, y], dtype='i2', casting={'unsafe'|'same_kind'|'safe'|'no'|'equiv'|'foo'})", "np.stack([x, y], casting={'unsafe'|'same_kind'|'safe'|'no'})", "np.stack([x, x], {0, np.zeros((2, *x.shape), x.dtype)|0, out=np.zeros((2, *x.shape))|out=None|out=np.zeros((2, *x.shape), 'i2')|out=np.zeros(3)})"],
    "vstack": ["np.vstack({[x, y]|(x, x, y)|[x]|[]|x|[x, 1]|[x, [1, 2]]|[k, 2]})", "np.vstack([x, y]{, dtype='f4'|, dtype='i2'|, dtype=bool|, dtype=None|, casting='no'|, dtype='i2', casting='unsafe'|, dtype='i2', casting='safe'})"],
    "hstack": ["np.hstack({[x, y]|(x, x, y)|[x]|[]|x|[x, 1]|[x, [1, 2]]|[k, 2]})", "np.hstack([x, y]{, dtype='f4'|, dtype='i2'|, dtype=bool|, dtype=None|, casting='no'|, dtype='i2', casting='unsafe'|, dtype='i2', casting='safe'})"],
    "dstack": ["np.dstack({[x, y]|(x, x, y)|[x]|[]|x|[x, 1]|[x, [1, 2]]|[k, 2]})"],
    "column_stack": ["np.column_stack({[x, y]|(x, x, y)|[x]|[]|x|[x, 1]|[x, [1, 2]]|[k, 2]})"],
    "append": ["np.append({x|[1, 2]}, {y|1|[1, 2]|k|x[:1]|values=x}{|, axis=None|, axis=0|, axis=-1|, axis=2|, axis=1.0})"],
    "tile": ["np.tile(x, {0|1|2|(2,)|(1, 2)|[2, 1]|()|(2, 1, 1, 2)|-1|(0, 2)|2.0|True|reps=2|np.array([1, 2])|(2, -1)})", "np.tile({k|[1, 2]}, {2|(2, 2)})"],
    "repeat": ["np.repeat(x, {0|1|2|-1|2.5|[2]|(2,)|np.array(2)|np.array([2])|[2.0]|True|np.int8(2)|repeats=3|[]|[1, 2, 3]}{|, None|, 0|, axis=-1|, axis=1|, axis=2|, axis=-4|, axis=1.0})", "np.repeat({k|[1, 2]|3}, 2{|, 0})"],
    "pad": ["np.pad(x, {0|1|(1,)|(1, 2)|[2, 0]|((1, 2),)|((1, 0), (0, 2))|dict([(0, 1)])|dict([(-1, (1, 2))])|dict([(5, 1)])|-1|1.0|(1, 2, 3)|True|np.array([1, 2])|pad_width=2|[[1], [2]]|()}{|, mode='edge'|, mode='wrap'})",
            "np.pad(x, {1|(2, 5)}, {'constant'|'edge'|'linear_ramp'|'maximum'|'mean'|'median'|'minimum'|'reflect'|'symmetric'|'wrap'|'empty'|'foo'|None})",
            "np.pad(x, 1, {constant_values=2|constant_values=2.7|constant_values=(1, 2)|constant_values=[3]|constant_values=((1, 2),)|constant_values=-1|constant_values=300|constant_values=1j|constant_values=np.nan|constant_values=True|constant_values=k|constant_values=x.sum()|constant_values=None|'edge', constant_values=1})",
            "np.pad(x, 1, {'linear_ramp', end_values=2|end_values=2|'mean', stat_length=1|stat_length=2|'reflect', reflect_type='odd'|'reflect', reflect_type='even'|'symmetric', reflect_type='odd'|reflect_type='odd'|'reflect', reflect_type='foo'|foo=1|'wrap', constant_values=0})"],
    "ptp": ["np.ptp(x{|%s|%s|, 0, np.zeros(x.shape[1:], x.dtype)|, out=None|, out=np.zeros((), 'i2')})" % (AXES, KEEP)],
    "count_nonzero": ["np.count_nonzero(x{|%s|%s})" % (AXES, KEEP), "np.count_nonzero({k|[1, 0]|True})"],
    "histogram": ["np.histogram(x{|, 4|, bins=3|, 5, (0, 4)|, 5, (0, 4), True|, 3, range=(-1, 2)|, [0, 1, 2]|, 0|, -1|, 2.5|, 3, (2, 1)|, 3, (1, 1)|, 3, (0, np.inf)|, bins=4, range=[0, 3]|, 4, (0, 3), density=True|, 4, (0, 3), density=False|, 4, None, None, y|, 4, (0, 3), weights=y|, 4, (0, 3), None, None|, True|, bins=k|, 3, (0.1, 0.7)|, np.int64(3), (0, np.float32(2))|, 3, (0, 2, 4)|, 3, 2})", "np.histogram({[1, 2]|2.5|k}, 3, (0, 4))"],
    "average": ["np.average(x{|%s|%s})" % (AXES, KEEP), "np.average(x{, weights=y|, weights=None|, axis=0, weights=y|, 0, np.arange(x.shape[0])|, -1, np.arange(x.shape[-1])|, (0, 1), y|, axis=(0, 1), weights=y[..., 0]|, weights=[1, 2, 3]|, weights=2|, axis=0, weights=2|, 0, [1, 2, 3]|, axis=1, weights=np.arange(3)|, weights=x > 1|, weights=x * 0|, axis=-1, weights=y, keepdims=True|, weights=y, keepdims=True|, axis=(1, 0), weights=y[0]|, axis=(1, 0), weights=np.ones((4, 3))})", "np.average(x{, returned=True|, returned=False|, 0, None, True|, axis=0, weights=y, returned=True|, weights=y, returned=1, keepdims=True|, axis=(), returned=True})"],
    "dot": ["np.dot({x|y|k|2|[1, 2, 3]|x.T|True|2.5}, {x|y.T|k|2|[1, 2, 3]|y|y[..., 0]|1j})", "np.dot(x, x.T{, np.zeros(())|, out=None|, out=np.zeros((x.shape[0], x.shape[0]), x.dtype)|, out=np.zeros((x.shape[0], x.shape[0]))|, out=np.zeros((3, 3), 'i2')|, out=np.zeros((2, 2), 'c16')})"],
    "vdot": ["np.vdot({x|y|k|2|[1, 2, 3]|x.T|True|2.5}, {x|y.T|k|2|[1, 2, 3]|y|1j})"],
    "inner": ["np.inner({x|y|k|2|[1, 2, 3]|x.T|True|2.5}, {x|y.T|k|2|[1, 2, 3, 4]|y|y[0]|1j})"],
    "outer": ["np.outer({x|y|k|2|[1, 2, 3]|x.T|True|2.5}, {x|y.T|k|2|[1, 2, 3]|y|1j})", "np.outer(x, x{, out=None|, np.zeros((x.size, x.size), x.dtype)|, out=np.zeros((x.size, x.size), 'f4')|, out=np.zeros((x.size, x.size), 'c16')|, out=np.zeros(3)})"],
    "tensordot": ["np.tensordot(x, {x|y.T|y|k|[1, 2, 3]}{|, 0|, 1|, 2|, axes=3|, -1|, (0, 0)|, axes=((0, 1), (0, 1))|, ((1, 0), (0, 1))|, [[0], [-1]]|, (0, -1)|, ([], [])|, 1.0|, ((0, 0), (0, 0))|, (0, 7)|, (0,)|, ((0, 1), (0,))|, True})"],
    "einsum": ["np.einsum({'i'|'ij'|'ji'|'ij->j'|'ij->'|'ii'|'ii->i'|'...'|'...i->...'|'...i->i...'|'ijk->kij'|'i->ii'|'i->j'|'->'|''|'ij->ji'|'I'|'i j'|'i1'|'ij,jk'}, x)", "np.einsum({'i,i'|'ij,ij'|'ij,jk'|'ij,kj->ik'|'...,...'|'...i,...i'|'ij,ij->ij'|'ijk,ijk->jk'|',->'|'ij,jk->ki'|'ij,ij->i'|'i,j'|'ij,j'}, x, {y|x|[1, 2, 3]|k|x.T})", "np.einsum('...i,...i->...', x, y{, optimize=True|, optimize=False|, optimize='greedy'|, optimize=['einsum_path', (0, 1)]|, optimize='foo'|, dtype='f4'|, dtype='i2'|, dtype=None|, dtype='f8', casting='unsafe'|, dtype='i2', casting='unsafe'|, casting='no'|, casting='safe'|, casting='same_kind'|, order='C'|, order='K'|, order='F'|, order='Z'|, out=None|, out=np.zeros(x.shape[:-1])|, foo=1})", "np.einsum(x, {[0]|[0, 1]|[0, 1], [1]|[0, 0]|[1, 0]|[30, 2]|[52, 0]|[-1, 0]|[..., 3]|[0, 'a']})", "np.einsum(x, [0, 1], x, {[2, 1], [0, 2]|[2, 1]|[0, 1], []|[1, 2], [2, 1]|[..., 1], [..., 0]})"],
    "linalg.matmul": ["np.linalg.matmul({x|x.T|[[1, 2, 3]]}, {x|y.T|[1, 2, 3]})"],
    "linalg.tensordot": ["np.linalg.tensordot(x, {x|y.T|y}{|, axes=0|, axes=1|, axes=((0, 1), (0, 1))|, axes=(0, 7)})"],
    "linalg.outer": ["np.linalg.outer({x|y|[1, 2, 3]}, {x|y.T|[1, 2, 3]})"],
    "linalg.norm": ["np.linalg.norm(x{|, None|, ord=0|, 1|, -1|, 2|, -2|, 3|, 2.5|, np.inf|, -np.inf|, 'fro'|, 'nuc'|, 'foo'|, True|, 1j}{|, axis=0|, axis=-1|, axis=(0, 1)|, axis=(-1, 0)|, axis=None|, axis=2|, axis=(0, 0)|, axis=()|, axis=(0,)|, axis=[0]|, axis=1.0|, axis=[0, 1]}{|, keepdims=True|, keepdims=False})", "np.linalg.norm({[1, 2]|k|3.0|[[1, 2], [3, 4]]})"],
    "linalg.vector_norm": ["np.linalg.vector_norm(x{|, ord=0|, ord=1|, ord=-1|, ord=2|, ord=-2|, ord=3|, ord=2.5|, ord=np.inf|, ord=-np.inf|, ord='fro'|, ord=None|, ord=True|, ord=1j}{|, axis=0|, axis=-1|, axis=(0, 1)|, axis=(-1, 0)|, axis=None|, axis=2|, axis=(0, 0)|, axis=()|, axis=(0,)|, axis=[0]|, axis=1.0}{|, keepdims=True|, keepdims=1})", "np.linalg.vector_norm({[1, 2]|k|3.0|[[1, 2], [3, 4]]})"],
    "linalg.matrix_norm": ["np.linalg.matrix_norm(x{|, ord='fro'|, ord='f'|, ord=None|, ord=1|, ord=-1|, ord=2|, ord=-2|, ord='nuc'|, ord=np.inf|, ord=-np.inf|, ord=3|, ord='foo'|, ord=True}{|, keepdims=True|, keepdims=0})"],
    "diagonal": ["np.diagonal(x{|, 0|, 1|, offset=-1|, 2|, -5|, 5|, 1.0|, True}{|, axis1=-1, axis2=0|, axis1=1, axis2=0|, axis2=2|, axis1=0, axis2=0|, axis1=5|, axis2=1.0|, axis2=-1})"],
    "trace": ["np.trace(x{|, 0|, 1|, offset=-1|, 2|, -5|, 5|, 1.0|, True}{|, axis1=-1, axis2=0|, axis2=2|, axis1=0, axis2=0|, axis1=5|, axis2=1.0})", "np.trace(x{%s|, out=None|, out=np.zeros(())|, out=np.zeros((), x.dtype)|, out=np.zeros((), 'i8')|, out=np.zeros(x.shape[2:])|, out=np.zeros(3)|, 0, 0, 1, 'f4', None})" % DTYPE.replace("axis=0, ", "offset=1, ")],
    "linalg.diagonal": ["np.linalg.diagonal(x{|, offset=0|, offset=1|, offset=-1|, offset=5|, offset=1.0})"],
    "linalg.trace": ["np.linalg.trace(x{|, offset=0|, offset=1|, offset=-1|, offset=5|, offset=1.0|, dtype='f4'|, dtype='i2'|, offset=-1, dtype=complex|, dtype=None|, dtype=bool})"],
    "diag": ["np.diag({x|[1, 2]|[[1, 2], [3, 4]]|x[..., 0]}{|, 0|, k=1|, -1|, 2|, -5|, 5|, 1.0|, True})"],
    "cross": ["np.cross({x|x[..., :3]|x[..., :2]|[1, 2, 3]|x.T|x[:3]}, {y|y[..., :3]|[1, 2, 3]|[1, 2]|y[:3]}{|, axis=0|, axisa=0|, axisb=0|, axisc=0|, -1, -1, 0|, axis=-1|, axis=1|, axis=None|, axis=7|, axisc=5|, axis=1.0})"],
    "kron": ["np.kron({x|k|[1, 2]|[[1], [2]]|2.5|x.T}, {y|[1, 2]|k|2|x[0]|[[1, 2]]})"],
    "where": ["np.where({m|x|True|k|[True]|x > 1}, {x|1|k|2.5|[1, 2, 3]|y}, {y|0|1j|k|np.float32(2)})", "np.where(m{|, x})"],
    "clip": ["np.clip(x, {1, 2|1.5, 2|0, None|None, 2|None, None|-1, 300|a_min=1, a_max=2|min=1|max=2|min=1, max=2|min=None|1|a_max=2|1, max=2|y, 2|0, y|[1, 2, 3], 4|2, 1|np.nan, 1|1, 2, min=3|k, None|None, 1, min=None|1j, 2|True, 2})", "np.clip(x)", "np.clip(x, 1, 2, {%s|dtype='f4'|dtype='i2'|dtype=None|dtype=complex|dtype='f8'|casting='unsafe'|casting='no'|dtype='i2', casting='unsafe'|where=m|where=True|order='C'|subok=True|foo=1|signature=None|dtype=bool|order='Z'})" % OUT, "np.clip({k|[1, 2]|2.5|3}, {1, 2|1.5, None})"],
    "round": ["np.round(x{|, 0|, 1|, decimals=2|, -1|, -2|, 20|, -20|, 400|, 1.0|, True|, None})", "np.round(x, {0, np.zeros_like(x)|%s})" % OUT, "np.round({k|[1.5, 2.25]|2.55|15}{|, 1|, -1})"],
    "around": ["np.around(x{|, 0|, 1|, decimals=2|, -1|, 1, None|, out=np.zeros_like(x)})"],
    "fix": ["np.fix({x|k|[1.5, -2.5]|-1.5})", "np.fix(x, {%s})" % OUT],
    "take": ["np.take({x|[1, 2, 3]}, {0|-1|[0, 1]|[[0, -1]]|[]|5|-7|1.7|[1.5]|True|[True, False]|np.array([1.0])|np.array([0, 1], 'u1')|np.array([-7, 9], 'i1')|x|k|(0, 1)|indices=0|None}{|, None|, axis=0|, axis=-1|, axis=2|, axis=-4|, axis=1.0|, axis=True}{|, mode='wrap'|, mode='clip'})", "np.take(x, {0|9}, {mode='raise'|mode='wrap'|mode='clip'|mode='foo'|mode=None|mode=0|mode=1|mode=2|mode=5|mode='r'})", "np.take(x, [0], {axis=0, out=np.zeros((1, *x.shape[1:]), x.dtype)|None, np.zeros(1)|out=np.zeros(1, x.dtype)|out=None|out=np.zeros(1, 'i2')|out=np.zeros(3)|out=np.zeros(1), mode='clip'|out=np.zeros(1, 'c16'), mode='wrap'})"],
    "take_along_axis": ["np.take_along_axis(x, {np.argsort(np.ones(x.shape), -1)|np.zeros(x.shape, int)|np.zeros(x.shape, 'u1')|np.array([0])|np.array([[0]])|np.array([[-1, 0]])|[0]|indices=np.zeros((*x.shape[:-1], 2), int)|np.array([9])|np.zeros(x.shape)|np.array([-9])|m}{|, -1|, 0|, axis=None|, axis=1|, axis=2|, axis=-4|, axis=1.0})"],
    "nan_to_num": ["np.nan_to_num(x{|, True|, copy=False|, nan=1|, nan=-1.5|, posinf=9|, neginf=-9|, nan=1, posinf=2, neginf=3|, posinf=None|, nan=k|, nan=1j|, nan=y|, True, 0.5, 7, 8|, nan=[1, 2, 3]|, nan=np.nan|, posinf=np.nan|, copy=None})", "np.nan_to_num({k|3|[1, np.nan]|np.inf|True})"],
    "triu": ["np.triu({x|[[1, 2], [3, 4]]}{|, 0|, k=1|, -1|, 5|, -5|, 1.0|, True|, 1.5|, 0.5})"],
    "tril": ["np.tril({x|[[1, 2], [3, 4]]}{|, 0|, k=1|, -1|, 5|, -5|, 1.0|, True|, 1.5|, -0.5})"],
    "isclose": ["np.isclose({x|k|[1, 2, 3]|2.5}, {y|x|1|1.5|k|[1, 2, 3]|np.nan|np.inf|1j|True}{|, 0.5|, rtol=0|, atol=2|, atol=-1|, equal_nan=True|, 1, 1, True|, rtol=[0.1]|, rtol=y})"],
    "allclose": ["np.allclose({x|k|[1, 2, 3]|2.5}, {y|x|1|1.5|k|[1, 2, 3]|np.nan|np.inf|1j|True}{|, 0.5|, rtol=0|, atol=2|, equal_nan=True|, 1, 1, True|, 1e9})"],
    "array_equal": ["np.array_equal({x|k|[1, 2, 3]|2.5}, {y|x|1|1.5|k|[1, 2, 3]|x[:1]|1j|True|x.T}{|, equal_nan=True|, False|, equal_nan=False})"],
    "isneginf": ["np.isneginf({x|k|[1, -np.inf]|-np.inf})", "np.isneginf(x, {%s|np.zeros(x.shape, bool)})" % OUT],
    "isposinf": ["np.isposinf({x|k|[1, -np.inf]|-np.inf})", "np.isposinf(x, {%s|np.zeros(x.shape, bool)})" % OUT],
    "iscomplexobj": ["np.iscomplexobj({x|k|[1, 2]|1j|[x]})"],
    "isrealobj": ["np.isrealobj({x|k|[1, 2]|1j|[x]})"],
    "real": ["np.real({x|k|[1, 2]|1j|[x, x]|2.5})"],
    "imag": ["np.imag({x|k|[1, 2]|1j|[x, x]|2.5})"],
    "angle": ["np.angle({x|k|[1, 2]|1j|-x|2.5|-1}{|, True|, deg=False|, deg=1})"],
    "sinc": ["np.sinc({x|k|[1, 2]|2.5|0})"],
    "put": ["[np.put({z|a=z}, ind={[0, -1]|1|[[2], [0]]|np.array([1, 1])|[99]|[]|1.5}, v={[5, 6]|7|2.5|[3]|k}{|, mode='raise'|, mode='clip'|, mode='wrap'}) or z for z in [x.copy()]][0]"],
    "put_along_axis": ["[np.put_along_axis(arr=z, indices={x.argmax(-1, keepdims=True)|np.zeros_like(x, int)|np.array([0])|x|np.array(9)}, values={7|y|2.5|[3]}, axis={-1|0|None|5}) or z for z in [x.copy()]][0]", "[np.put_along_axis(z, x.argmax(-1, keepdims=True), 1) or z for z in [x.copy()]][0]"],
    "fill_diagonal": ["[np.fill_diagonal(a=z, val={7|2.5|[1, 2]|k|x.sum()|1j}{|, wrap=True|, wrap=False}) or z for z in [x.copy()]][0]"],
    "copyto": ["[np.copyto(z, {y|2|2.5|x.T|k|1j|[1]|src=3}{|, casting='unsafe'|, 'safe'|, casting='no'|, where=m|, where=x > 1|, 'unsafe', m|, where=True|, where=[True]}) or z for z in [x.copy()]][0]", "[np.copyto(dst=z, src=1, where=m) or z for z in [x.copy()]][0]"],
    "putmask": ["[np.putmask({z|a=z}, mask={m|x|[True]}, values={y|x|2|2.5|[3]|k|np.int8(1)|[1, 2]}) or z for z in [x.copy()]][0]", "[np.putmask(z, m, 1) or z for z in [x.copy()]][0]"],
    "place": ["[np.place({z|arr=z}, mask={m|x|[True]}, vals={x|2|2.5|[3]|k|np.int8(1)|[1, 2]}) or z for z in [x.copy()]][0]", "[np.place(z, m, 1) or z for z in [x.copy()]][0]"],
    "copy": ["np.copy({x|k|[1, 2]|3}{|, 'C'|, order='F'|, 'K'|, 'A'|, order='Z'|, subok=True|, 'K', False})"],
    "astype": ["np.astype({x|y}, {'f4'|'i2'|bool|complex|'f8'|'u1'|None|'foo'|'f2'}{|, copy=False|, copy=True|, device='cpu'|, device='gpu'|, device=None})"],
    "dsplit": ["np.dsplit({x|x[..., None]|x[None]}, {1|2|3|0|[1]|(1, 2)|[0, 9]|indices_or_sections=3|2.0})"],
    "block": ["np.block({x|[x, y]|[[x], [y]]|[[x, y], [y, x]]|[x, 1]|[[[x]]]|[[x, [y]]]|[[], x]|[]|(x, y)|[(x, y)]|[x[:1], x]|[[x, x], [y]]|k|[k, x]|[[k]]})"],
    "common_type": ["np.common_type({x|x, y|y, x|x, np.float32(1)})"],
    "min_scalar_type": ["np.min_scalar_type({x|k|y|x.sum()})"],
    "piecewise": ["np.piecewise(x, {[x < 1]|x < 1|[x < 1, x > 2]|[x < 1, x > 2, m]|(x < 1, m)|[x[:1] < 1, m]|[]|True}, {[1]|[1, 2]|[-1.5, lambda v: v + 1, 3]|[lambda v: v * v, lambda v: v - 2]|[lambda v: v - v.max(), 0]|funclist=[1, 2]})", "np.piecewise(x, [x < 1], {[lambda v, a: v + a, lambda v, a: v - a], 2|[lambda v, a: v * a, 0], a=3|[lambda v: v + 1, k]})"],
    "apply_along_axis": ["np.apply_along_axis({lambda v: v.sum()|lambda v: v * 2|lambda v: v[:1]|lambda v: np.outer(v, v)|np.sort|lambda v: 1|func1d=np.cumsum, }{, 0|, -1|, 1|, 3|, axis=0}, {x|arr=x|y})", "np.apply_along_axis(lambda v, a, b=1: v * a + b, 0, x, {2|k, 3|2, b=5})"],
    "apply_over_axes": ["np.apply_over_axes({np.sum|np.max|np.cumsum|func=np.sum}, {x|a=x}, {0|-1|[0, 1]|axes=(0, -1)|5|()})", "np.apply_over_axes(np.sum, x, {0|-1|(0, 1)|axes=[0]})"],
    "result_type": ["np.result_type({x|x, y|x, 1|x, 1.5|x, 1j|k|'f4', x|x, 'i2'|1, 2.5|k, 1.5|x, np.float32|[1], x|x, k|True|})"],
    "can_cast": ["np.can_cast({x|k|x.dtype|'f4'}, {'f4'|'i2'|bool|complex|'f8'|y.dtype|y}{|, 'safe'|, casting='same_kind'|, casting='unsafe'|, 'no'|, 'equiv'|, 'foo'})"],
    "may_share_memory": ["np.may_share_memory(x, {x|y|x[1:]|x.T|x + 1|x.copy()|k|[1]}{|, 0|, max_work=1|, -1|, max_work=None})"],
    "shares_memory": ["np.shares_memory(x, {x|y|x[1:]|x.T|x + 1|x.copy()|k|[1]}{|, 0|, max_work=1|, -1|, max_work=None})"],
}
SHARED = {
    "sum": [AXES, KEEP, DTYPE, INITIAL, WHERE, ROUT], "prod": [AXES, KEEP, DTYPE, INITIAL, WHERE, ROUT],
    "max": [AXES, KEEP, INITIAL, WHERE, ROUT], "min": [AXES, KEEP, INITIAL, WHERE, ROUT],
    "amax": [AXES, KEEP, INITIAL, WHERE, ROUT], "amin": [AXES, KEEP, INITIAL, WHERE, ROUT],
    "any": [AXES, KEEP, WHERE, ROUT], "all": [AXES, KEEP, WHERE, ROUT],
    "mean": [AXES, KEEP, DTYPE, WHERE, ROUT],
    "argmax": [AXES, KEEP, ROUT], "argmin": [AXES, KEEP, ROUT],
    "cumsum": [AXES, DTYPE, ", out=np.zeros((x.size,))|, 0, out=np.zeros((*x.shape,), x.dtype) if x.ndim else None|, out=None|, out=np.zeros(1)|, -1, None, np.zeros((*x.shape, 1), x.dtype)[..., 0] if x.ndim else None"],
    "cumprod": [AXES, DTYPE, ", out=np.zeros((x.size,))|, 0, out=np.zeros((*x.shape,), x.dtype) if x.ndim else None|, out=None|, out=np.zeros(1)|, -1, None, np.zeros((*x.shape, 1), x.dtype)[..., 0] if x.ndim else None"],
}
SPREAD = ", ddof=0|, ddof=1|, ddof=-1|, ddof=0.5|, ddof=20|, correction=0|, correction=1|, correction=0.5|, ddof=1, correction=1|, ddof=0, correction=1|, ddof=1, correction=0|, axis=0, ddof=1, keepdims=True|, ddof=None|, ddof=True|, correction=None|, mean=0.5|, mean=None|, mean=x.mean()|, ddof=1, mean=x.mean(keepdims=True)|, correction=1, mean=0|, mean=0.5, keepdims=True|, axis=0, mean=x.mean(axis=0, keepdims=True)|, axis=-1, mean=x.mean(axis=-1, keepdims=True)|, axis=0, mean=x.mean(axis=0)|, ddof=1j|, ddof='a'"
SHARED["var"] = SHARED["std"] = [AXES, KEEP, DTYPE, SPREAD, WHERE, ROUT]
METHODS = {}
for _name, _parts in SHARED.items():
    FUNCTIONS[_name] = [f"np.{_name}(x{{|{'|'.join(_parts)}}})", f"np.{_name}({{[1, 2, 3]|k|2.5|[[1, 2], [3, 4]]|[x, y]|[k, 1]|True}}{{|, axis=0}})"]
    if not _name.startswith("am"):
        _method = "|".join(p.removeprefix(", ") for p in "|".join(_parts).split("|"))
        METHODS[_name] = [f"x.{_name}({{|{_method}}})"]
del METHODS["argmax"], METHODS["argmin"]
for _name in ("argmax", "argmin"):
    METHODS[_name] = [f"x.{_name}({{|0|axis=-1|axis=None|2|-4|(0,)|1.0|keepdims=True|0, keepdims=True|out=None|0, np.zeros(x.shape[1:], int)|True}})"]
METHODS |= {
    "astype": ["x.astype({'f4'|'i2'|bool|complex|'f8'|'u1'|None|'foo'|dtype='f4'}{|, 'K'|, order='F'|, order='Z'|, subok=False|, copy=False|, copy=True|, 'C', 'safe'|, casting='no'|, casting='same_kind'|, casting='equiv'|, casting='foo'|, copy=0})"],
    "put": ["[z.put({[0, -1]|1|indices=[2]}, values={[5, 6]|7|2.5}{|, mode='raise'|, mode='clip'|, mode='wrap'}) or z for z in [x.copy()]][0]"],
    "sort": ["[z.sort({|0|axis=-1|-1, 'stable'|kind='heapsort'|2|-4|axis=1.0|stable=True}) or z for z in [x.copy()]][0]"],
    "partition": ["[z.partition({0|kth=1|-1|[0, 1]|9|1.0}{|, 0|, axis=-1|, axis=5}) or z for z in [x.copy()]][0]"],
    "argsort": ["x.argsort({|0|axis=-1|None|kind='stable'|2|-4|axis=1.0|stable=True})"],
    "argpartition": ["x.argpartition({0|kth=1|-1|[0, 1]|9|1.0}{|, 0|, axis=-1|, axis=None|, axis=5}).shape"],
    "nonzero": ["x.nonzero()"],
    "choose": ["x.choose({[x, y]|[y, 1, 2]|[k, k]|[x]|x, y|x, y, k|}{|, mode='clip'|, mode='wrap'|, mode='raise'})"],
    "compress": ["x.compress({[True, False]|condition=[0, 1]|m[0]|[True] * 9|[]}{|, 0|, axis=-1|, axis=None|, axis=5})"],
    "searchsorted": ["np.sort(x.ravel()).searchsorted({2|y|[1, 2]|v=x}{|, 'right'|, side='left'|, side='foo'})"],
    "copy": ["x.copy({|'C'|order='F'|'K'|'A'|'Z'|None})"],
    "reshape": ["x.reshape({-1|(-1,)|(1, -1)|()|2, -1|(2, -1)|0, -1|x.size|x.size, 1|[-1, 2]|-1, -1|None|2.0||1, 1, -1|1, (-1,)|shape=-1})", "x.reshape({-1|(1, -1)|-1, 1|-1, 2|(2, -1)}{, order='C'|, order='F'|, order='A'|, order='K'|, order='Z'|, order=None|, copy=None|, copy=True|, copy=False})"],
    "ravel": ["x.ravel({|'C'|order='F'|'A'|'K'|'Z'|None})"],
    "flatten": ["x.flatten({|'C'|order='F'|'A'|'K'|'Z'|None})"],
    "transpose": ["x.transpose({|None|0|1, 0|(1, 0)|-1, 0|[1, 0]|0, 0|2, 0, 1|()|(2, 0, 1)|axes=0|1.0, 0})"],
    "swapaxes": ["x.swapaxes({0|-1|1|2|-4|True}, {0|-1|3})", "x.swapaxes({axis1=0, axis2=1|0})"],
    "squeeze": ["{x|x[None]|x[..., None]}.squeeze({|None|0|axis=-1|(0,)|()|2|[0]|(0, 0)})"],
    "repeat": ["x.repeat({0|2|-1|[2]|2.5|repeats=2|[1, 2, 3]|}{|, 0|, axis=-1|, axis=None|, 2})"],
    "diagonal": ["x.diagonal({|1|offset=-1|0, 1, 0|axis1=-1, axis2=0|axis2=2|axis1=0, axis2=0|5})"],
    "take": ["x.take({0|[0, -1]|[[0]]|9|[]|indices=0|1.5}{|, 0|, axis=-1|, axis=None|, 2|, mode='wrap'|, axis=0, mode='clip'|, mode='foo'|, 0, np.zeros_like(x[0])|, out=None})"],
    "clip": ["x.clip({|1, 2|1|min=1|max=2|None, 2|None, None|1.5, 300|1, 2, np.zeros_like(x)|min=y|1, 2, dtype='f4'|1, 2, where=m|1, 2, casting='unsafe'|1, out=None|a_min=1|1, 2, dtype='i2', casting='unsafe'})"],
    "round": ["x.round({|0|1|decimals=-1|2|1, np.zeros_like(x)|out=None|1.0|None})"],
    "dot": ["x.dot({x|y.T|2|k|b=x|[1, 2, 3]|x.T, np.zeros((x.shape[0], x.shape[0]), x.dtype)|x.T, out=None|})"],
    "conj": ["x.conj({|1|out=None})"],
    "conjugate": ["x.conjugate({|1})"],
    "trace": ["x.trace({|1|offset=-1|0, 1, 0|axis1=-1, axis2=0|axis1=0, axis2=0|dtype='f4'|0, 0, 1, 'i2'|out=np.zeros(())|out=None|dtype=None|0, 0, 1, None, np.zeros((), x.dtype)})"],
    "item": ["x.item({|0|-1|0, 0|(0, 1)|9|(0,)|()|1.0|None|True|1, 2, 3|-9})"],
    "fill": ["fill({np.zeros_like(x)|np.ones(3, 'i2')|np.ones((2, 2), 'f4')}, {1|2.5|k|x.sum()|-1|True|1j|300|[1]|x|None|np.nan})"],
    "__copy__": ["copy.copy(x)"], "__deepcopy__": ["copy.deepcopy(x)"],
}

UNARY = "absolute arccos arccosh arcsin arcsinh arctan arctanh ceil conjugate cos cosh exp exp2 expm1 floor invert isfinite isinf isnan log log10 log1p log2 logical_not negative positive reciprocal rint sign sin sinh sqrt square tan tanh trunc deg2rad degrees fabs rad2deg radians signbit"
BINARY = "add arctan2 bitwise_and bitwise_or bitwise_xor copysign divide equal floor_divide fmod greater greater_equal hypot left_shift less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply not_equal power remainder right_shift subtract float_power fmax fmin heaviside"
KEYWORDS = "dtype='f4'|dtype='f8'|dtype=bool|dtype='i2'|dtype=complex|dtype=None|dtype='i8'|casting='unsafe'|casting='no'|casting='safe'|casting='equiv'|casting='foo'|where=True|where=m|where=False|order='F'|order='K'|order='Z'|subok=False|signature=None|signature='dd->d'|foo=1|dtype='i2', casting='unsafe'|" + OUT
UFUNCS = {
    **{name: [f"np.{name}({{x|k|[1, 0]|2.5}})", f"np.{name}(x, {{np.zeros_like(x)|{KEYWORDS}}})"] for name in UNARY.split()},
    **{name: [f"np.{name}({{x|k|[1, 2, 3]|2.5}}, {{y|x|k|2|1.5|1j|True|[1, 2, 3]}})", f"np.{name}(x, y, {{np.zeros_like(x)|{KEYWORDS}}})"] for name in BINARY.split()},
    "matmul": ["np.matmul({x|x.T|k|[1, 2, 3]}, {x|y.T|y[..., 0]|[1, 2, 3]|k})", "np.matmul(x, x.swapaxes(-1, -2), {%s|out=np.zeros((*x.shape[:-1], x.shape[-2]), x.dtype)|axes=[(-2, -1), (-2, -1), (-2, -1)]|axis=0|keepdims=True})" % KEYWORDS],
    "vecdot": ["np.vecdot({x|x.T|k|[1, 2, 3]}, {x|y|y[..., 0]|[1, 2, 3]|k})", "np.vecdot(x, y, {%s|axis=0|axis=-1|keepdims=True|axes=[0, 0]|out=np.zeros(x.shape[:-1])})" % KEYWORDS],
    "divmod": ["np.divmod({x|k|[1, 2, 3]|2.5}, {y|x|k|2|1.5|[1, 2, 3]})", "np.divmod(x, y, {%s|out=(np.zeros_like(x), np.zeros_like(x))|out=(None, None)})" % KEYWORDS],
    "modf": ["np.modf({x|k|[1, 2, 3]|2.5})", "np.modf(x, {%s|out=(np.zeros_like(x), np.zeros_like(x))|out=(None, None)})" % KEYWORDS],
}
for _name in ("add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "subtract", "divide", "power", "bitwise_or"):
    _parts = "|".join((AXES, KEEP, DTYPE, INITIAL, WHERE, ROUT))
    UFUNCS[f"{_name}.reduce"] = [f"np.{_name}.reduce(x{{|{_parts}|, 0, 'f8', None, True|, 0, None, np.zeros(x.shape[1:])|, 0, None, None, True, 2, m|, foo=1|, 0, None, None, False}})", f"np.{_name}.reduce({{[1, 2]|k|[x, y]|[k, 2]}})"]
    UFUNCS[f"{_name}.accumulate"] = [f"np.{_name}.accumulate(x{{|, 0|, axis=-1|, axis=2|, axis=None|, (0,)|, dtype='f4'|, 0, 'i2'|, 0, None, np.zeros((*x.shape,), x.dtype) if x.ndim else None|, out=None|, dtype=complex|, foo=1|, axis=True}})"]
UFUNCS["add.at"] = ["np.add.at(np.zeros_like(x), 0, 1)", "np.add.reduceat(x, [0])", "np.add.outer(x, y)"]
_SIZES = "3|(2, 3)|()|0|-1|[2, 2]|(2, 0)|2.0|True|np.int64(2)|x.shape|x.shape[0]|(x.size, 2)|None|np.array([1, 2])|k"
_LAID = "{|, None|, 'i2'|, dtype=complex|, dtype=bool|, 'f4', 'F'|, order='Z'|, device='cpu'|, device='gpu'|, like=None|, dtype='foo'}"
CREATION = {
    "zeros": [f"np.zeros({{{_SIZES}}})", f"np.zeros({{x.shape|shape=3}}{_LAID})"],
    "ones": [f"np.ones({{{_SIZES}}})", f"np.ones({{x.shape|shape=3}}{_LAID})"],
    "empty": [f"np.empty({{{_SIZES}}}).shape", f"np.empty({{(0,)|shape=0}}{_LAID})"],
    "full": [f"np.full({{{_SIZES}}}, 2)", "np.full({x.shape|3}, {2|2.5|True|1j|k|x|x.sum()|[1, 2, 3]|np.nan|fill_value=np.float32(2)|'a'|x[:1]})", "np.full(x.shape, x.sum()%s)" % _LAID, "np.full(shape=(2, *x.shape), fill_value=x{%s})" % _LAID[1:-1]],
    "arange": ["np.arange({5|k|2, 7|0, k|7, 2|7, 2, -2|0, 1, 0.25|k, 9, 2|1, 9, k|x.shape[0]|2.5|0, 2.5|0, 5, 0|0, k, 0|1j|True|0, 0|5, 0|x.sum()|x.size, 9|np.float32(3)|stop=3|0, stop=k, step=2|0, 5, None|None|k, None|0, None, 2|'a'})", "np.arange(k{%s})" % _LAID[1:-1].replace("'f4', 'F'", "dtype='f4'").replace(", None", ", dtype=None").replace(", 'i2'", ", dtype='i2'").replace(", order='Z'", ", dtype='u1'")],
    "linspace": ["np.linspace({0, 1|0, k|k, 9|x, 9|0, x|x, y|1, 1|0, 1j|5, 2|x.sum(), 3}{|, 5|, num=1|, 0|, -1|, 2.0|, num=k|, 4, False|, endpoint=False|, 3, True, True|, 1, retstep=True|, 0, retstep=True|, 4, retstep=True, endpoint=False|, 5, dtype='f4'|, 5, dtype=int|, 5, dtype=bool|, 3, axis=-1|, 3, axis=1|, 3, axis=5|, num=True|, 3, device='cpu'|, 3, device='gpu'|, 3, dtype=None})"],
    "eye": ["np.eye({3|k|x.shape[0]|0|-1|2.0|True|N=2}{|, 2|, M=4|, 2, 1|, k=-1|, k=k|, 3, 1, int|, dtype=bool|, dtype=complex|, dtype=None|, k=1.5|, k=9|, order='F'|, order='Z'|, device='cpu'|, device='gpu'|, like=None|, M=None|, M=k|, M=0|, k=x.shape[0]})"],
    "identity": ["np.identity({3|k|x.shape[0]|0|-1|2.0|True|n=2}{|, int|, dtype=bool|, dtype=None|, like=None})"],
    "tri": ["np.tri({3|k|x.shape[0]|0|-1|2.0|2.5|True|N=2}{|, 2|, M=4|, 2, 1|, k=-1|, k=k|, 3, 1, int|, dtype=bool|, dtype=complex|, dtype=None|, k=1.5|, k=9|, like=None|, M=None|, M=k|, M=0|, k=x.shape[0]})"],
    "array": ["np.array({x|k|[x, y]|[1, k]|[[k, 1.5], [2, 3]]|[x, 1]|x.T|[x.sum(), 2]|[[x], [y]]|[True, k]|(k,)}{|, 'f4'|, dtype='i2'|, dtype=None|, ndmin=3|, ndmin=0|, copy=True|, copy=False|, copy=None|, order='C'|, order='F'|, order='Z'|, subok=True|, like=None|, ndmax=1|, ndmax=0|, ndmin=40|, dtype=complex|, dtype=bool})", "np.array(object=x)"],
    "asarray": ["np.asarray({x|k|[x, y]|[1, k]|x.T}{|, 'f4'|, dtype='i2'|, dtype=None|, copy=True|, copy=False|, copy=None|, order='C'|, order='F'|, order='Z'|, 'f4', 'K'|, device='cpu'|, device='gpu'|, like=None})", "np.asarray(a=x)"],
    "asanyarray": ["np.asanyarray({x|k|[x, y]}{|, 'f4'|, dtype=None|, copy=True|, copy=False|, order='F'|, device='cpu'|, like=None})", "np.asanyarray(a=x)"],
    "ascontiguousarray": ["np.ascontiguousarray({x|k|[x, y]|x.T|a=x}{|, dtype='f4'|, dtype=None|, like=None})"],
    "asfortranarray": ["np.asfortranarray({x|k|[x, y]|x.T|a=x}{|, dtype='f4'|, dtype=None|, like=None})"],
    "sum": ["np.sum({[k, 1]|[x, y]|(k, 2.5)|[k, k]|a=x}{|, dtype='f4'|, axis=0|, initial=2})"], "prod": ["np.prod({[k, 1]|x.shape|(k, 2.5)|[k, k]|a=x}{|, dtype='f4'|, axis=0|, initial=2})"],
    "take": ["np.take([1, 2, 3], {k - 2|x > 1|[k - 2, 0]}{|, 0|, mode='wrap'|, mode='clip'})"],
    "pad": ["np.pad([1, 2, 3], {k|(k, 1)|(0, x.shape[0])}{|, 'edge'|, constant_values=k})"],
}


def calls(templates):
    """The texts of all alternatives."""
    found = []
    for template in templates:
        parts = re.split(r"\{([^{}]*)\}", template)
        texts = [""]
        for n, part in enumerate(parts):
            texts = [t + choice for t in texts for choice in (part.split("|") if n % 2 else [part])]
        found += texts
    return list(dict.fromkeys(found))
