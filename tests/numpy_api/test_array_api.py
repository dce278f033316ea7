"""The Array API standard, 2024.12, with its extensions: every name is there, and takes what the standard says."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import numpy as np
import pytest

import corejax.numpy as jnp

CONSTANTS = "e inf nan newaxis pi"
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
ONE_OPERAND = """
    abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan
    log log10 log1p log2 logical_not negative positive real reciprocal round sign signbit sin sinh sqrt square tan tanh
    trunc
"""
TWO_OPERANDS = """
    add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
    floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum
    minimum multiply nextafter not_equal pow remainder subtract
"""
FUNCTIONS = """
    arange(start, /, stop=None, step=1, *, dtype=None, device=None)
    asarray(obj, /, *, dtype=None, device=None, copy=None)
    empty(shape, *, dtype=None, device=None)
    empty_like(x, /, *, dtype=None, device=None)
    eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
    from_dlpack(x, /, *, device=None, copy=None)
    full(shape, fill_value, *, dtype=None, device=None)
    full_like(x, /, fill_value, *, dtype=None, device=None)
    linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
    meshgrid(*arrays, indexing="xy")
    ones(shape, *, dtype=None, device=None)
    ones_like(x, /, *, dtype=None, device=None)
    tril(x, /, *, k=0)
    triu(x, /, *, k=0)
    zeros(shape, *, dtype=None, device=None)
    zeros_like(x, /, *, dtype=None, device=None)
    astype(x, dtype, /, *, copy=True, device=None)
    broadcast_arrays(*arrays)
    broadcast_shapes(*shapes)
    broadcast_to(x, /, shape)
    can_cast(from_, to, /)
    finfo(type, /)
    iinfo(type, /)
    isdtype(dtype, kind)
    result_type(*arrays_and_dtypes)
    clip(x, /, min=None, max=None)
    where(condition, x1, x2, /)
    take(x, indices, /, *, axis=None)
    take_along_axis(x, indices, /, *, axis=-1)
    matmul(x1, x2, /)
    matrix_transpose(x, /)
    tensordot(x1, x2, /, *, axes=2)
    vecdot(x1, x2, /, *, axis=-1)
    concat(arrays, /, *, axis=0)
    expand_dims(x, /, axis)
    flip(x, /, *, axis=None)
    moveaxis(x, source, destination, /)
    permute_dims(x, /, axes)
    repeat(x, repeats, /, *, axis=None)
    reshape(x, /, shape, *, copy=None)
    roll(x, /, shift, *, axis=None)
    squeeze(x, /, axis)
    stack(arrays, /, *, axis=0)
    tile(x, repetitions, /)
    unstack(x, /, *, axis=0)
    argmax(x, /, *, axis=None, keepdims=False)
    argmin(x, /, *, axis=None, keepdims=False)
    count_nonzero(x, /, *, axis=None, keepdims=False)
    nonzero(x, /)
    searchsorted(x1, x2, /, *, side="left", sorter=None)
    unique_all(x, /)
    unique_counts(x, /)
    unique_inverse(x, /)
    unique_values(x, /)
    isin(x1, x2, /, *, invert=False)
    argsort(x, /, *, axis=-1, descending=False, stable=True)
    sort(x, /, *, axis=-1, descending=False, stable=True)
    cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
    cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
    max(x, /, *, axis=None, keepdims=False)
    mean(x, /, *, axis=None, keepdims=False)
    min(x, /, *, axis=None, keepdims=False)
    prod(x, /, *, axis=None, dtype=None, keepdims=False)
    std(x, /, *, axis=None, correction=0.0, keepdims=False)
    sum(x, /, *, axis=None, dtype=None, keepdims=False)
    var(x, /, *, axis=None, correction=0.0, keepdims=False)
    all(x, /, *, axis=None, keepdims=False)
    any(x, /, *, axis=None, keepdims=False)
    diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
    __array_namespace_info__()
"""
EXTENSIONS = {
    "linalg": """
    cholesky(x, /, *, upper=False)
    cross(x1, x2, /, *, axis=-1)
    det(x, /)
    diagonal(x, /, *, offset=0)
    eigh(x, /)
    eigvalsh(x, /)
    inv(x, /)
    matmul(x1, x2, /)
    matrix_norm(x, /, *, keepdims=False, ord="fro")
    matrix_power(x, n, /)
    matrix_rank(x, /, *, rtol=None)
    matrix_transpose(x, /)
    outer(x1, x2, /)
    pinv(x, /, *, rtol=None)
    qr(x, /, *, mode="reduced")
    slogdet(x, /)
    solve(x1, x2, /)
    svd(x, /, *, full_matrices=True)
    svdvals(x, /)
    tensordot(x1, x2, /, *, axes=2)
    trace(x, /, *, offset=0, dtype=None)
    vecdot(x1, x2, /, *, axis=-1)
    vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
    """,
    "fft": """
    fft(x, /, *, n=None, axis=-1, norm=None)
    ifft(x, /, *, n=None, axis=-1, norm=None)
    rfft(x, /, *, n=None, axis=-1, norm=None)
    irfft(x, /, *, n=None, axis=-1, norm=None)
    hfft(x, /, *, n=None, axis=-1, norm=None)
    ihfft(x, /, *, n=None, axis=-1, norm=None)
    fftn(x, /, *, s=None, axes=None, norm=None)
    ifftn(x, /, *, s=None, axes=None, norm=None)
    rfftn(x, /, *, s=None, axes=None, norm=None)
    irfftn(x, /, *, s=None, axes=None, norm=None)
    fftfreq(n, /, *, d=1.0, dtype=None, device=None)
    rfftfreq(n, /, *, d=1.0, dtype=None, device=None)
    fftshift(x, /, *, axes=None)
    ifftshift(x, /, *, axes=None)
    """,
}  # None as `norm` is "backward"
ATTRIBUTES = "dtype device mT ndim shape size T"
METHODS = """
    __abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ __eq__ __float__
    __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__
    __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __rshift__ __setitem__ __sub__ __truediv__ __xor__ to_device
    __radd__ __rand__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__ __rrshift__ __rsub__
    __rtruediv__ __rxor__
"""


def rows() -> list[str]:
    """Names with their parameters."""
    elementwise = [f"{name}(x, /)" for name in ONE_OPERAND.split()] + [f"{n}(x1, x2, /)" for n in TWO_OPERANDS.split()]
    return elementwise + [line.strip() for line in FUNCTIONS.strip().splitlines()]


@pytest.mark.parametrize("row", rows())
def test_functions(row: str) -> None:
    assert_takes(jnp, row)


@pytest.mark.parametrize(
    ("name", "row"), [(n, row.strip()) for n, t in EXTENSIONS.items() for row in t.strip().split("\n")]
)
def test_extensions(name: str, row: str) -> None:
    assert_takes(getattr(jnp, name), row)


def assert_takes(namespace: Any, row: str) -> None:
    (definition,) = ast.parse(f"def {row}: pass").body
    assert isinstance(definition, ast.FunctionDef)
    wanted = definition.args
    function = getattr(namespace, definition.name)
    ours = inspect.signature(function)
    positional = [a.arg for a in wanted.posonlyargs]
    by_name = [a.arg for a in (*wanted.args, *wanted.kwonlyargs)]
    optional = len(wanted.defaults)
    required = [a.arg for a in wanted.posonlyargs + wanted.args][: len(positional + wanted.args) - optional]
    ours.bind(*positional, **dict.fromkeys(by_name))
    least = [name for name in required if name in positional]
    ours.bind(*least, **dict.fromkeys(name for name in required if name not in positional))
    if wanted.vararg is not None:
        ours.bind(1, 2, 3, **dict.fromkeys(a.arg for a in wanted.kwonlyargs))
    for name, default in zip([a.arg for a in wanted.kwonlyargs], wanted.kw_defaults, strict=True):
        if name == "copy":  # of arrays that nobody writes to
            continue
        assert default is not None
        expected, found = ast.literal_eval(default), ours.parameters[name].default
        assert found == expected or (found is None and not expected), f"{name} is {found!r} by default"


def test_constants_and_dtypes() -> None:
    for name in CONSTANTS.split():
        value, expected = getattr(jnp, name), getattr(np, name)
        assert value == expected or value != value
    for name in DTYPES.split():
        assert jnp.zeros(2, getattr(jnp, name)).dtype == name
    assert jnp.__array_api_version__ == "2024.12"


def test_arrays() -> None:
    x: Any = jnp.ones((2, 2))
    for name in (ATTRIBUTES + METHODS).split():
        assert hasattr(x, name), name
    assert jnp.float32 == x.dtype and x.dtype != jnp.int32
    assert x.to_device(x.device) is not None and x.device in jnp.__array_namespace_info__().devices()
