"""Symbolic shapes: `symbolic_shape` and `symbolic_args_specs` parse them, and `solve` finds the symbols' values."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from corejax.extend import ShapedArray, tree
from corejax.extend.types import ShapeDtypeStruct, shaped_abstractify
from corejax_xla_backend.export.bounds import range_of
from corejax_xla_backend.export.dims import LARGEST, DimExpr, SymbolicScope, as_python, parse


def is_symbolic_dim(p: Any) -> bool:
    """Return whether a size is a symbolic expression."""
    return isinstance(p, DimExpr)


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Any, ...]:
    """Parse a shape from text: `symbolic_shape("b, 2*b, 3")`.

    Args:
        shape_spec: expressions separated by commas; `_` stands for the size in `like`, `...` for all remaining sizes
            in `like`. None stands for `"..."`.
        constraints: constraints on the sizes (see `SymbolicScope`), for a new scope.
        scope: an existing scope for the symbols.
        like: the shape to take sizes from for `_` and `...`.

    Raises:
        TypeError: the shape is not a string.
        ValueError: the text is not a valid shape, or both a scope and constraints are given.
    """
    if not (shape_spec is None or isinstance(shape_spec, str)):
        raise TypeError(f"symbolic_shape: a shape is a string such as 'b, 2*b, 3', got {shape_spec!r}")
    if scope is not None and constraints:
        raise ValueError("symbolic_shape takes a scope, which has its own constraints, or constraints, not both")
    scope = SymbolicScope(constraints) if scope is None else scope
    text = "..." if shape_spec is None else shape_spec
    try:
        body: Any = ast.parse(f"[{as_python(text).strip()}]", mode="eval").body
    except SyntaxError:
        raise ValueError(f"symbolic_shape: a shape is expressions separated by commas, got {text!r}") from None
    if len(body.elts) == 1 and isinstance(body.elts[0], ast.Tuple | ast.List):  # text in parentheses or brackets
        body = body.elts[0]
    entries = [ast.unparse(entry) for entry in body.elts]
    sizes: list[Any] = []
    for i, entry in enumerate(entries):
        if entry == "...":
            if i != len(entries) - 1 or like is None:
                raise ValueError(f"symbolic_shape: '...' must be the last entry and needs like=, got {text!r}")
            sizes += like[i:]
        elif entry == "_":
            if like is None or i >= len(like) or like[i] is None:
                raise ValueError(f"symbolic_shape: entry {i} of {text!r} is '_', which needs a size in like=")
            sizes.append(like[i])
        else:
            sizes.append(parse(entry, scope))
    if like is not None and len(sizes) != len(like):
        raise ValueError(f"symbolic_shape: {text!r} has {len(sizes)} entries, the shape {tuple(like)} has {len(like)}")
    for i, (size, known) in enumerate(zip(sizes, like or (), strict=False)):
        if isinstance(size, int) and known is not None and size != known:
            raise ValueError(f"symbolic_shape: entry {i} of {text!r} is {size}, but {known} in the shape {like}")
    return tuple(sizes)


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """Return arguments as `ShapeDtypeStruct`s, for `export(f)(*symbolic_args_specs(args, "b, ..."))`.

    Args:
        args: a pytree of arrays or of objects with a shape and a dtype.
        shapes_specs: a text for all leaves, or a prefix of the pytree with texts as for `symbolic_shape`. None stands
            for the leaf's own shape. A list may stand for a tuple of arguments.
        constraints: constraints on the sizes (see `SymbolicScope`), for a new scope.
        scope: an existing scope for the symbols.

    Raises:
        ValueError: the texts do not match the arguments' shapes, or both a scope and constraints are given.
    """
    if scope is not None and constraints:
        raise ValueError("symbolic_args_specs takes a scope, which has its own constraints, or constraints, not both")
    scope = SymbolicScope(constraints) if scope is None else scope
    leaves, treedef = tree.tree_flatten(args)
    avals = [shaped_abstractify(x) for x in leaves]
    if shapes_specs is None or isinstance(shapes_specs, str):
        texts = [shapes_specs] * len(leaves)
    else:
        if isinstance(shapes_specs, list) and isinstance(args, tuple):
            shapes_specs = tuple(shapes_specs)
        texts = tree.broadcast_prefix(shapes_specs, args, is_leaf=lambda x: x is None)
    shapes = [symbolic_shape(t, scope=scope, like=a.shape) for t, a in zip(texts, avals, strict=True)]
    types = [ShapeDtypeStruct(s, a.dtype, a.weak_type) for s, a in zip(shapes, avals, strict=True)]
    return tree.tree_unflatten(treedef, types)


def symbolic_sizes(aval: ShapedArray | ShapeDtypeStruct) -> list[DimExpr]:
    """Return the sizes of a type that are symbolic."""
    sizes: Sequence[Any] = aval.shape
    return [size for size in sizes if isinstance(size, DimExpr)]


def scope_of_avals(name: str, avals: Sequence[ShapedArray | ShapeDtypeStruct]) -> SymbolicScope | None:
    """Return the scope of the symbols in types, or None if there are no symbols.

    Raises:
        ValueError: the symbols have several scopes.
    """
    scopes = {id(d.scope): d.scope for aval in avals for d in symbolic_sizes(aval)}
    if len(scopes) > 1:
        raise ValueError(
            f"export of {name}: shapes of the arguments have symbols of several scopes: make them with the same scope= "
            "(symbolic_shape), or all at once (symbolic_args_specs)"
        )
    return next(iter(scopes.values()), None)


def scope_of_sizes(sizes: dict[str, Any]) -> SymbolicScope | None:
    """Return the scope of symbolic sizes, or None if all sizes are integers."""
    return next((size.scope for size in sizes.values() if isinstance(size, DimExpr)), None)


def aval_at(aval: ShapedArray, sizes: dict[str, Any]) -> ShapedArray:
    """Return a type with sizes substituted for its symbols."""
    return aval.update(shape=tuple(d.at(sizes) if isinstance(d, DimExpr) else d for d in aval.shape))


def solve(
    name: str, wanted: Sequence[ShapedArray], given: Sequence[ShapedArray], names: Sequence[str], scope: SymbolicScope
) -> dict[str, Any]:
    """Return the values of symbols for which the wanted types equal the given types.

    Each step solves an equation that is linear in its only unknown symbol, until no more symbols can be solved.

    Args:
        name: name of the exported function, for messages.
        wanted: types with symbols of `scope`.
        given: types of the arguments; their sizes may be symbols of another scope, so the values may be symbolic.
        names: names of the arguments, for messages.
        scope: the scope of the symbols to solve for.

    Raises:
        ValueError: the types do not match for all sizes, or a constraint is violated; the message names the argument.
        InconclusiveDimensionOperation: a constraint depends on the values of symbolic sizes.
    """
    sizes: dict[str, Any] = {}
    equations: list[tuple[Any, Any, ShapedArray, ShapedArray, str]] = []
    for want, have, arg in zip(wanted, given, names, strict=True):
        if want.ndim != have.ndim or want.dtype != have.dtype:
            raise _mismatch(name, want, have, arg)
        equations += [(w, h, want, have, arg) for w, h in zip(want.shape, have.shape, strict=True)]
    progress = True
    while progress:
        progress = False
        for w, h, want, have, arg in equations:
            unknown: set[str] = w.variables() - sizes.keys() if isinstance(w, DimExpr) else set()
            if len(unknown) == 1:
                solution = _solve_for(w, h, unknown.pop(), sizes)
                if solution is not None:
                    symbol, value = solution
                    if not _is_valid_size(value):
                        raise _mismatch(name, want, have, arg)
                    sizes[symbol], progress = value, True
    for w, h, want, have, arg in equations:
        if isinstance(w, DimExpr) and not w.variables() <= sizes.keys():
            raise ValueError(
                f"export of {name}: the arguments' shapes do not determine the sizes in {w!r}: use a symbol by itself, "
                "such as b, in a shape"
            )
        if (w.at(sizes) if isinstance(w, DimExpr) else w) != h:
            raise _mismatch(name, want, have, arg, sizes)
    violated = scope.violated_constraint(sizes)
    if violated is not None:
        raise ValueError(f"call of the exported function {name}: the constraint {violated!r} does not hold for {sizes}")
    return sizes


def _is_valid_size(size: Any) -> bool:
    return 1 <= size <= LARGEST if isinstance(size, int) else bool(range_of(size)[0] >= 1)


def _solve_for(w: DimExpr, size: Any, variable: str, sizes: dict[str, Any]) -> tuple[str, Any] | None:
    """Return the variable and its value if `w` is linear in it, else None.

    The value is -1, an invalid size, if no integer solves the equation for all sizes.
    """
    if any(names.count(variable) > 1 for names, _ in w.terms) or w.has_operand(variable):
        return None
    rest = w.at({**sizes, variable: 0})
    factor = w.at({**sizes, variable: 1}) - rest
    if not isinstance(factor, int) or not factor:
        return None
    quotient, remainder = divmod(size - rest, factor)
    return variable, quotient if isinstance(remainder, int) and not remainder else -1


def _mismatch(name: str, want: ShapedArray, have: ShapedArray, arg: str, sizes: Any = None) -> ValueError:
    with_sizes = f" with {', '.join(f'{k} = {v}' for k, v in sizes.items())}" if sizes else ""
    return ValueError(
        f"call of the exported function {name}: it takes {want.str_short()} as argument {arg}{with_sizes}, got "
        f"{have.str_short()}"
    )
