"""`symbolic_shape` and its kin: shapes with symbols, as users write them, and what sizes arguments give to symbols."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from corejax.extend import ShapedArray, tree
from corejax.extend.types import ShapeDtypeStruct, shaped_abstractify
from corejax_xla_backend.export.bounds import range_of
from corejax_xla_backend.export.dims import LARGEST, DimExpr, SymbolicScope, as_python, parse


def is_symbolic_dim(p: Any) -> bool:
    """Whether a size is a symbolic expression."""
    return isinstance(p, DimExpr)


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Any, ...]:
    """A shape from text: `symbolic_shape("b, 2*b, 3")`.

    Args:
        shape_spec: expressions with commas between; `_` is the size in `like`, `...` all that are left there.
        constraints: what is known of the sizes (`SymbolicScope`), for a scope of their own.
        scope: an existing scope to be in.
        like: a shape, for `_` and `...`.

    Raises:
        TypeError: the shape is no text.
        ValueError: the text is no shape, or both a scope and constraints are given.
    """
    if not (shape_spec is None or isinstance(shape_spec, str)):
        raise TypeError(f"symbolic_shape: a shape is a text such as 'b, 2*b, 3', got {shape_spec!r}")
    if scope is not None and constraints:
        raise ValueError("symbolic_shape takes a scope, which has its constraints, or constraints; not both")
    scope = SymbolicScope(constraints) if scope is None else scope
    text = "..." if shape_spec is None else shape_spec
    try:
        body: Any = ast.parse(f"[{as_python(text).strip()}]", mode="eval").body
    except SyntaxError:
        raise ValueError(f"symbolic_shape: a shape is expressions with commas between, got {text!r}") from None
    if len(body.elts) == 1 and isinstance(body.elts[0], ast.Tuple | ast.List):  # written as one
        body = body.elts[0]
    entries = [ast.unparse(entry) for entry in body.elts]
    sizes: list[Any] = []
    for i, entry in enumerate(entries):
        if entry == "...":
            if i != len(entries) - 1 or like is None:
                raise ValueError(f"symbolic_shape: '...' is the last entry and needs like=, got {text!r}")
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
            raise ValueError(f"symbolic_shape: entry {i} of {text!r} is {size}, and {known} in the shape {like}")
    return tuple(sizes)


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """Arguments as `ShapeDtypeStruct`s, for `export(f)(*symbolic_args_specs(args, "b, ..."))`.

    Args:
        args: a pytree of arrays or of what has a shape and a dtype.
        shapes_specs: a text for all, or a prefix of the pytree with texts, None for the argument's own shape. A list
            may stand for a tuple of arguments.
        constraints: as of `symbolic_shape`.
        scope: as there.

    Raises:
        ValueError: the texts do not fit the arguments.
    """
    if scope is not None and constraints:
        raise ValueError("symbolic_args_specs takes a scope, which has its constraints, or constraints; not both")
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


def scope_of_avals(name: str, avals: Sequence[ShapedArray]) -> SymbolicScope | None:
    """The scope of the symbols in types, None where there are none.

    Raises:
        ValueError: there are two scopes.
    """
    scopes = {id(d.scope): d.scope for aval in avals for d in aval.shape if isinstance(d, DimExpr)}
    if len(scopes) > 1:
        raise ValueError(
            f"export of {name}: shapes of the arguments have symbols of several scopes: make them with the same scope= "
            "(symbolic_shape), or all at once (symbolic_args_specs)"
        )
    return next(iter(scopes.values()), None)


def scope_of_sizes(sizes: dict[str, Any]) -> SymbolicScope | None:
    """The scope of what stands for symbols, None where it is integers only."""
    return next((size.scope for size in sizes.values() if isinstance(size, DimExpr)), None)


def aval_at(aval: ShapedArray, sizes: dict[str, Any]) -> ShapedArray:
    """A type for sizes of symbols."""
    return aval.update(shape=tuple(d.at(sizes) if isinstance(d, DimExpr) else d for d in aval.shape))


def solve(
    name: str, wanted: Sequence[ShapedArray], given: Sequence[ShapedArray], names: Sequence[str], scope: SymbolicScope
) -> dict[str, Any]:
    """The sizes of symbols for types of arguments, of which sizes may be symbols of another scope.

    Raises:
        ValueError: the types do not fit, for all sizes; or a constraint is broken; names the argument.
        InconclusiveDimensionOperation: a constraint does not hold for all sizes.
    """
    sizes: dict[str, Any] = {}
    equations = []
    for want, have, arg in zip(wanted, given, names, strict=True):
        if want.ndim != have.ndim or want.dtype != have.dtype:
            raise _misfit(name, want, have, arg)
        equations += [(w, h, want, have, arg) for w, h in zip(want.shape, have.shape, strict=True)]
    progress = True
    while progress:
        progress = False
        for w, h, want, have, arg in equations:
            unknown = w.variables() - sizes.keys() if isinstance(w, DimExpr) else set()
            if len(unknown) == 1:
                found = _solved(w, h, unknown.pop(), sizes)
                if found is not None:
                    if not _is_size_of_symbol(found[1]):
                        raise _misfit(name, want, have, arg)
                    sizes[found[0]], progress = found[1], True
    for w, h, want, have, arg in equations:
        if isinstance(w, DimExpr) and not w.variables() <= sizes.keys():
            raise ValueError(f"export of {name}: no argument's shape tells the sizes in {w!r} by itself, as b does")
        if (w.at(sizes) if isinstance(w, DimExpr) else w) != h:
            raise _misfit(name, want, have, arg, sizes)
    broken = scope.broken(sizes)
    if broken is not None:
        raise ValueError(f"call of the exported function {name}: the constraint {broken!r} does not hold for {sizes}")
    return sizes


def _is_size_of_symbol(size: Any) -> bool:
    return 1 <= size <= LARGEST if isinstance(size, int) else bool(range_of(size)[0] >= 1)


def _solved(w: DimExpr, size: Any, variable: str, sizes: dict[str, Any]) -> tuple[str, Any] | None:
    """The variable, if the expression is linear in it; -1 where there is no such integer for all sizes."""
    if any(names.count(variable) > 1 for names, _ in w.terms) or w.inside(variable):
        return None
    rest = w.at({**sizes, variable: 0})
    factor = w.at({**sizes, variable: 1}) - rest
    if not isinstance(factor, int) or not factor:
        return None
    quotient, remainder = divmod(size - rest, factor)
    return variable, quotient if isinstance(remainder, int) and not remainder else -1


def _misfit(name: str, want: ShapedArray, have: ShapedArray, arg: str, sizes: Any = None) -> ValueError:
    with_sizes = f" with {', '.join(f'{k} = {v}' for k, v in sizes.items())}" if sizes else ""
    return ValueError(
        f"call of the exported function {name}: it takes {want.str_short()} as argument {arg}{with_sizes}, got "
        f"{have.str_short()}"
    )
