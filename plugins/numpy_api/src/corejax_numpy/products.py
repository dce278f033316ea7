"""Products of vectors and matrices: `dot`, `matmul`, `einsum` and their kin, all in terms of `dot_general`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax_lax_basic import lax
from corejax_numpy.arguments import canonical_axis, canonical_dtype, promote_dtypes
from corejax_numpy.contraction import (
    contract_pair,
    in_order,
    sum_out,
    without_repeated_labels,
)
from corejax_numpy.elementwise import conjugate


def _operands(name: str, preferred_element_type: Any, *xs: Any) -> tuple[list[Any], Any]:
    """Operands in their common dtype, and the dtype of the result."""
    arrays = promote_dtypes(name, *xs)
    return arrays, canonical_dtype(preferred_element_type) or arrays[0].dtype


def _check_sizes(name: str, x: Any, x_axis: int, y: Any, y_axis: int) -> None:
    if x.shape[x_axis] != y.shape[y_axis]:
        raise TypeError(
            f"{name}: axis {x_axis % x.ndim} of {x.aval.str_short()} and axis {y_axis % y.ndim} "
            f"of {y.aval.str_short()} are contracted, so they have one size; "
            f"got {x.shape[x_axis]} and {y.shape[y_axis]}"
        )


def dot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sums of products over the last axis of `a` and the last but one (or only) axis of `b`; scalars multiply.

    Args:
        a: an array.
        b: an array.
        precision: passed on to the compiler; None leaves it to the backend.
        preferred_element_type: dtype of sums and result; by default the operands' common one.

    Returns:
        An array with the other axes of `a`, then those of `b`.

    Raises:
        TypeError: the contracted axes have different sizes.
    """
    (a, b), dtype = _operands("dot", preferred_element_type, a, b)
    if not a.ndim or not b.ndim:
        return lax.convert_element_type_p.bind(a * b, new_dtype=dtype, weak_type=False) if dtype != a.dtype else a * b
    axis = b.ndim - min(b.ndim, 2)
    _check_sizes("dot", a, -1, b, axis)
    return lax.dot_general(a, b, (((a.ndim - 1,), (axis,)), ((), ())), precision, dtype)


def matmul(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Products of the matrices in the last two axes; leading axes broadcast, a vector is a row or a column.

    Args:
        a: an array of one axis or more.
        b: an array of one axis or more.
        precision: passed on to the compiler; None leaves it to the backend.
        preferred_element_type: dtype of sums and result; by default the operands' common one.

    Raises:
        ValueError: an operand is a scalar, or the leading axes do not broadcast.
        TypeError: the contracted axes have different sizes.
    """
    (a, b), dtype = _operands("matmul", preferred_element_type, a, b)
    for i, x in enumerate((a, b)):
        if not x.ndim:
            raise ValueError(f"matmul: operand {i} is a scalar; use multiply")
    _check_sizes("matmul", a, -1, b, b.ndim - min(b.ndim, 2))
    lead = lax.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    leading = [str(i) for i in range(-len(lead), 0)]
    rows = ["row"] if a.ndim > 1 else []
    columns = ["column"] if b.ndim > 1 else []
    a_labels = [*leading[len(lead) - max(a.ndim - 2, 0) :], *rows, "k"]
    b_labels = [*leading[len(lead) - max(b.ndim - 2, 0) :], "k", *columns]
    wanted = [*leading, *rows, *columns]
    out, labels = contract_pair(a, a_labels, b, b_labels, wanted, precision, dtype)
    return in_order(out, labels, wanted)


def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sum of products of all elements, those of `a` conjugated."""
    (a, b), dtype = _operands("vdot", preferred_element_type, a, b)
    a, b = conjugate(lax.reshape(a, (a.size,))), lax.reshape(b, (b.size,))
    return dot(a, b, precision=precision, preferred_element_type=dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sums of products along one axis, the elements of `x1` conjugated; the other axes broadcast."""
    (a, b), dtype = _operands("vecdot", preferred_element_type, x1, x2)
    for x in (a, b):
        canonical_axis(axis, x.ndim)
    a, b = (_axis_last(x, axis) for x in (a, b))
    _check_sizes("vecdot", a, -1, b, -1)
    lead = lax.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    leading = [str(i) for i in range(-len(lead), 0)]
    labels = [[*leading[len(lead) - x.ndim + 1 :], "k"] for x in (a, b)]
    out, got = contract_pair(conjugate(a), labels[0], b, labels[1], leading, precision, dtype)
    return in_order(out, got, leading)


def _axis_last(x: Any, axis: int) -> Any:
    axis %= x.ndim
    return lax.transpose(x, (*(d for d in range(x.ndim) if d != axis), axis))


def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sums of products over the last axes of both; scalars multiply."""
    (a, b), dtype = _operands("inner", preferred_element_type, a, b)
    if not a.ndim or not b.ndim:
        return dot(a, b, precision=precision, preferred_element_type=dtype)
    _check_sizes("inner", a, -1, b, -1)
    return lax.dot_general(a, b, (((a.ndim - 1,), (b.ndim - 1,)), ((), ())), precision, dtype)


def outer(a: Any, b: Any) -> Any:
    """All products of an element of `a` (a row of the result) and one of `b` (a column)."""
    a, b = promote_dtypes("outer", a, b)
    a, b = lax.reshape(a, (a.size,)), lax.reshape(b, (b.size,))
    return lax.expand_dims(a, (1,)) * lax.expand_dims(b, (0,))


def tensordot(
    a: Any,
    b: Any,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Sums of products over pairs of axes.

    Args:
        a: an array.
        b: an array.
        axes: a number of axes, the last of `a` with the first of `b`; or the axes of `a` and, in the same order,
            those of `b`.
        precision: passed on to the compiler; None leaves it to the backend.
        preferred_element_type: dtype of sums and result; by default the operands' common one.

    Returns:
        An array with the other axes of `a`, then those of `b`.

    Raises:
        TypeError: a pair of axes has different sizes, or the numbers of axes differ.
        ValueError: an axis does not exist.
    """
    (a, b), dtype = _operands("tensordot", preferred_element_type, a, b)
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise TypeError(
                f"tensordot: there are no {axes} axes to contract in {a.aval.str_short()} and {b.aval.str_short()}"
            )
        pairs = (tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes)))
    else:
        of_a, of_b = (x if isinstance(x, tuple | list) else (x,) for x in axes)
        if len(of_a) != len(of_b):
            raise TypeError(f"tensordot: as many axes of a as of b, got {tuple(of_a)} and {tuple(of_b)}")
        pairs = (tuple(canonical_axis(d, a.ndim) for d in of_a), tuple(canonical_axis(d, b.ndim) for d in of_b))
    for d, e in zip(*pairs, strict=True):
        _check_sizes("tensordot", a, d, b, e)
    return lax.dot_general(a, b, (pairs, ((), ())), precision, dtype)


# -- einsum ------------------------------------------------------------------------------------------------------


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Einstein's summation: products of arrays along axes with one label, summed over labels that the result has not.

    Args:
        subscripts: labels of the axes of each operand and, after `->`, of the result: `"ij,jk->ik"`; `...` stands
            for axes that broadcast. Or, as in NumPy, the first operand, followed by its labels, and so on.
        operands: the arrays.
        optimize: in which order to contract more than two: a strategy of opt_einsum, or a path.
        precision: passed on to the compiler; None leaves it to the backend.
        preferred_element_type: dtype of sums and result; by default the operands' common one.

    Raises:
        ValueError: the subscripts do not fit the operands, or axes with one label have different sizes.
    """
    import opt_einsum

    spec = (subscripts, *operands)
    inputs, output, arrays = opt_einsum.parser.parse_einsum_input(spec)
    arrays = promote_dtypes("einsum", *arrays)
    dtype = canonical_dtype(preferred_element_type) or arrays[0].dtype
    labels = [list(part) for part in inputs.split(",")]
    _check_labels(labels, arrays)
    strategy = (
        {True: "auto", False: [tuple(range(len(arrays)))]}.get(optimize, optimize)
        if isinstance(optimize, bool)
        else optimize
    )
    shapes = [tuple(x.shape) for x in arrays]
    path, _ = opt_einsum.contract_path(f"{inputs}->{output}", *shapes, shapes=True, optimize=strategy)
    terms = [without_repeated_labels(x, names) for x, names in zip(arrays, labels, strict=True)]
    for step in path:
        group = [terms[i] for i in step]
        terms = [t for i, t in enumerate(terms) if i not in step]
        needed = {*output, *(a for _, names in terms for a in names)}
        group.sort(key=lambda term: min((output.index(a) for a in term[1] if a in output), default=len(output)))
        terms.append(_contract(group, needed, precision, dtype))
    ((out, names),) = terms
    out, names = sum_out(out, names, [a for a in names if a not in output])
    out = in_order(out, names, list(output))
    return out if out.dtype == dtype else lax.convert_element_type(out, dtype)


def _check_labels(labels: list[list[str]], arrays: list[Any]) -> None:
    sizes: dict[str, int] = {}
    for i, (names, x) in enumerate(zip(labels, arrays, strict=True)):
        if len(names) != x.ndim:
            raise ValueError(
                f"einsum: operand {i} is {x.aval.str_short()}, its subscripts {''.join(names)!r} name {len(names)} axes"
            )
        for name, size in zip(names, x.shape, strict=True):
            known = sizes.setdefault(name, size)
            if known == 1:
                sizes[name] = size
            elif size not in (1, known):
                raise ValueError(
                    f"einsum: label {name!r} has size {known}, and {size} in operand {i}, {x.aval.str_short()}"
                )


def _contract(group: list[Any], needed: set[str], precision: Any, dtype: Any) -> tuple[Any, list[Any]]:
    """One step of a contraction path: its operands, two as a rule, multiplied one after the other."""
    x, names = group[0]
    for i, (y, y_names) in enumerate(group[1:], 1):
        later = {a for _, rest in group[i + 1 :] for a in rest}
        if x.dtype != y.dtype:  # `x` is a product already, of the wider type that was asked for
            y = lax.convert_element_type(y, x.dtype)
        x, names = contract_pair(x, names, y, y_names, list(needed | later), precision, dtype)
    return sum_out(x, names, [a for a in names if a not in needed])
