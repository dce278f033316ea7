"""`einsum`, implemented with `dot_general`; opt_einsum parses the subscripts and finds the contraction order."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from corejax.extend.messages import clears_cache
from corejax_lax_basic import lax
from corejax_numpy.arguments import canonical_dtype, promote_dtypes, refuse_out
from corejax_numpy.contraction import contract_pair, in_order, sum_out, without_repeated_labels


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
    _dot_general: Any = lax.dot_general,
) -> Any:
    """Evaluate Einstein's summation: products along axes with one label, summed over labels not in the result.

    Args:
        subscripts: labels of the axes of each operand and, after `->`, of the result: `"ij,jk->ik"`; `...` stands for
            axes that broadcast. Alternatively, as in NumPy, the first operand, followed by its list of labels, and so
            on.
        operands: the arrays.
        out: not supported; must be None.
        optimize: the order in which more than two operands are contracted: a strategy of opt_einsum ("auto" by
            default), a path, True for the optimal order, or False for the given order.
        precision: precision of the products, passed to the compiler; None, the default, is the backend's default.
        preferred_element_type: dtype of the sums and of the result; by default the operands' common dtype.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.
        _dot_general: the function that multiplies two operands, with the signature of `lax.dot_general`.

    Raises:
        ValueError: the subscripts do not match the operands, or axes with one label have different sizes.
    """
    refuse_out("einsum", out)
    text, given = _parse_arguments("einsum", subscripts, operands)
    arrays = promote_dtypes("einsum", *given)
    dtype = canonical_dtype(preferred_element_type) or arrays[0].dtype
    plan = _cached_plan(text, tuple(x.shape for x in arrays), optimize)
    terms: list[tuple[Any, list[Any]]] = [
        without_repeated_labels(x, list(names)) if len({*names}) < len(names) else (x, list(names))
        for x, names in zip(arrays, plan.labels, strict=True)
    ]
    for step in plan.path:
        group = [terms[i] for i in step]
        terms = [t for i, t in enumerate(terms) if i not in step]
        needed = {*plan.output, *(a for _, names in terms for a in names)}
        group.sort(key=lambda term: min((plan.output.index(a) for a in term[1] if a in plan.output), default=99))
        terms.append(_contract(group, needed, precision, dtype, _dot_general))
    ((result, names),) = terms
    result, names = sum_out(result, names, [a for a in names if a not in plan.output])
    result = in_order(result, names, list(plan.output))
    result = result if result.dtype == dtype else lax.convert_element_type(result, dtype)
    return lax.place("einsum", result, out_sharding)


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> tuple[list[tuple[int, ...]], Any]:
    """Return the order in which `einsum` contracts its operands.

    Args:
        subscripts: labels, as for `einsum`.
        operands: the arrays.
        optimize: the strategy, as for `einsum`.

    Returns:
        The path, and opt_einsum's printable report. Each step of the path lists the operands that it contracts; its
        result is appended to the remaining operands.
    """
    import opt_einsum  # type: ignore[import-untyped]  # no annotations

    text, arrays = _parse_arguments("einsum_path", subscripts, operands)
    shapes = tuple(x.shape for x in promote_dtypes("einsum_path", *arrays))
    _cached_plan(text, shapes, optimize)  # raises errors with a clear message
    path, report = opt_einsum.contract_path(text, *shapes, shapes=True, optimize=_strategy(optimize, len(shapes)))
    return path, report


def _parse_arguments(name: str, subscripts: Any, operands: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Return the subscripts as a string, and the arrays."""
    if not isinstance(subscripts, str):  # operands and their labels in turn
        from opt_einsum.parser import convert_interleaved_input  # type: ignore[import-untyped]  # no annotations

        try:
            subscripts, operands = convert_interleaved_input((subscripts, *operands))
        except (TypeError, ValueError, LookupError, AttributeError):
            raise TypeError(
                f"{name}: subscripts must be a string such as 'ij,jk->ik', or operands and lists of labels alternate; "
                f"got {subscripts!r} first"
            ) from None
    if not operands:
        raise ValueError(f"{name}: no operands given for subscripts {subscripts!r}")
    return subscripts, tuple(operands)


class _Plan(NamedTuple):
    """A contraction plan.

    Attributes:
        labels: the labels of each operand's axes.
        output: the labels of the result's axes.
        path: the terms that each step contracts.
    """

    labels: tuple[str, ...]
    output: str
    path: tuple[tuple[int, ...], ...]


def _cached_plan(text: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> _Plan:
    if isinstance(optimize, list):
        optimize = tuple(tuple(step) if isinstance(step, list) else step for step in optimize)
    try:
        return _cache(text, shapes, optimize)
    except TypeError:  # the strategy is not hashable
        return _plan(text, shapes, optimize)


_SYMBOLIC_SIZE = 32


def _plan(text: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> _Plan:
    import opt_einsum

    try:
        inputs, output, _ = opt_einsum.parser.parse_einsum_input((text, *shapes), shapes=True)
    except ValueError as error:
        raise ValueError(f"einsum: subscripts {text!r} of operands with shapes {shapes}: {error}") from None
    labels = tuple(inputs.split(","))
    _check_labels(labels, shapes)
    strategy = _strategy(optimize, len(shapes))
    # opt_einsum needs a number for each symbolic size.
    shapes = tuple(tuple(d if isinstance(d, int) else _SYMBOLIC_SIZE for d in shape) for shape in shapes)
    path, _ = opt_einsum.contract_path(f"{inputs}->{output}", *shapes, shapes=True, optimize=strategy)
    return _Plan(labels, output, tuple(map(tuple, path)))


_cache = lru_cache(maxsize=1024)(_plan)
clears_cache(_cache.cache_clear)


def _strategy(optimize: Any, count: int) -> Any:
    if isinstance(optimize, bool):
        return "optimal" if optimize else [tuple(range(count))]
    if isinstance(optimize, tuple):
        optimize = list(optimize)
    return optimize[1:] if isinstance(optimize, list) and optimize[:1] == ["einsum_path"] else optimize


def _check_labels(labels: tuple[str, ...], shapes: tuple[tuple[int, ...], ...]) -> None:
    sizes: dict[str, int] = {}
    for i, (names, shape) in enumerate(zip(labels, shapes, strict=True)):
        if len(names) != len(shape):
            raise ValueError(f"einsum: operand {i} has shape {shape}, its subscripts {names!r} name {len(names)} axes")
        for name, size in zip(names, shape, strict=True):
            known = sizes.setdefault(name, size)
            if known == 1:
                sizes[name] = size
            elif size not in (1, known):
                raise ValueError(
                    f"einsum: label {name!r} has size {known}, and {size} in operand {i}, which has shape {shape}"
                )


def _contract(
    group: list[Any], needed: set[str], precision: Any, dtype: Any, dot_general: Any
) -> tuple[Any, list[Any]]:
    """Execute one step of a contraction path: multiply its operands (two, usually) one after another."""
    x, names = group[0]
    for i, (y, y_names) in enumerate(group[1:], 1):
        later = {a for _, rest in group[i + 1 :] for a in rest}
        if x.dtype != y.dtype:  # `x` is a product of an earlier step, in the preferred element type
            y = lax.convert_element_type(y, x.dtype)
        x, names = contract_pair(x, names, y, y_names, list(needed | later), precision, dtype, dot_general)
    return sum_out(x, names, [a for a in names if a not in needed])
