"""`einsum` in terms of `dot_general`; opt_einsum reads the subscripts and says in which order to contract."""

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
    """Einstein's summation: products of arrays along axes with one label, summed over labels that the result has not.

    Args:
        subscripts: labels of the axes of each operand and, after `->`, of the result: `"ij,jk->ik"`; `...` stands
            for axes that broadcast. Or, as in NumPy, the first operand, followed by its labels, and so on.
        operands: the arrays.
        out: None; results are new arrays.
        optimize: in which order to contract more than two: a strategy of opt_einsum, a path, True for the best
            order, or False for the order given.
        precision: passed on to the compiler; None leaves it to the backend.
        preferred_element_type: dtype of sums and result; by default the operands' common one.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.
        _dot_general: the function that multiplies two operands, with the arguments of `lax.dot_general`.

    Raises:
        ValueError: the subscripts do not fit the operands, or axes with one label have different sizes.
    """
    refuse_out("einsum", out)
    text, arrays = _read("einsum", subscripts, operands)
    arrays = promote_dtypes("einsum", *arrays)
    dtype = canonical_dtype(preferred_element_type) or arrays[0].dtype
    plan = _planned(text, tuple(x.shape for x in arrays), optimize)
    terms = [
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
    """In which order `einsum` contracts its operands.

    Args:
        subscripts: as of `einsum`.
        operands: the arrays.
        optimize: as of `einsum`.

    Returns:
        The path: which operands each step contracts, whose result becomes the last one; and opt_einsum's report,
        which can be printed.
    """
    import opt_einsum

    text, arrays = _read("einsum_path", subscripts, operands)
    shapes = tuple(x.shape for x in promote_dtypes("einsum_path", *arrays))
    _planned(text, shapes, optimize)  # says what does not fit
    return opt_einsum.contract_path(text, *shapes, shapes=True, optimize=_strategy(optimize, len(shapes)))


def _read(name: str, subscripts: Any, operands: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Subscripts as a text, and the arrays."""
    if not isinstance(subscripts, str):  # operands and their labels in turn
        from opt_einsum.parser import convert_interleaved_input

        try:
            subscripts, operands = convert_interleaved_input((subscripts, *operands))
        except (TypeError, ValueError, LookupError, AttributeError):
            raise TypeError(
                f"{name}: subscripts are a text such as 'ij,jk->ik', or operands and lists of labels come in turn; "
                f"got {subscripts!r} first"
            ) from None
    if not operands:
        raise ValueError(f"{name}: there is no operand for subscripts {subscripts!r}")
    return subscripts, tuple(operands)


class _Plan(NamedTuple):
    """What to do.

    Attributes:
        labels: of the axes of each operand.
        output: labels of the result.
        path: which terms each step contracts.
    """

    labels: tuple[str, ...]
    output: str
    path: tuple[tuple[int, ...], ...]


def _planned(text: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> _Plan:
    if isinstance(optimize, list):
        optimize = tuple(tuple(step) if isinstance(step, list) else step for step in optimize)
    try:
        return _remembered(text, shapes, optimize)
    except TypeError:  # a strategy that has no hash
        return _plan(text, shapes, optimize)


_SOME_SIZE = 32


def _plan(text: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> _Plan:
    import opt_einsum

    try:
        inputs, output, _ = opt_einsum.parser.parse_einsum_input((text, *shapes), shapes=True)
    except ValueError as error:
        raise ValueError(f"einsum: subscripts {text!r} of operands with shapes {shapes}: {error}") from None
    labels = tuple(inputs.split(","))
    _check_labels(labels, shapes)
    strategy = _strategy(optimize, len(shapes))
    # Of a size that is a symbol the path needs some number.
    shapes = tuple(tuple(d if isinstance(d, int) else _SOME_SIZE for d in shape) for shape in shapes)
    path, _ = opt_einsum.contract_path(f"{inputs}->{output}", *shapes, shapes=True, optimize=strategy)
    return _Plan(labels, output, tuple(map(tuple, path)))


_remembered = lru_cache(maxsize=1024)(_plan)
clears_cache(_remembered.cache_clear)


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
    """One step of a contraction path: its operands, two as a rule, multiplied one after the other."""
    x, names = group[0]
    for i, (y, y_names) in enumerate(group[1:], 1):
        later = {a for _, rest in group[i + 1 :] for a in rest}
        if x.dtype != y.dtype:  # `x` is a product already, of the wider type that was asked for
            y = lax.convert_element_type(y, x.dtype)
        x, names = contract_pair(x, names, y, y_names, list(needed | later), precision, dtype, dot_general)
    return sum_out(x, names, [a for a in names if a not in needed])
