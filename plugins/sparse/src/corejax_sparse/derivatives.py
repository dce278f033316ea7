"""Derivatives with respect to sparse arrays: those of the stored elements, at the same places."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import corejax
from corejax.extend import tree
from corejax_sparse._base import JAXSparse


@tree.register_pytree_node_class
class _Parts:
    """What is differentiated by; a class of its own, so that it is found in the structure of a Jacobian."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        return self.values, None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Sequence[Any]) -> _Parts:
        return cls(*children)


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def _by_data(
    transform: Callable[..., Any],
    f: Callable[..., Any],
    argnums: int | Sequence[int],
    stacked: bool,
    value: bool,
    options: Any,
) -> Callable[..., Any]:
    """Return `transform(f)` for the data of sparse arguments, with results in sparse arrays of the same places."""
    one = isinstance(argnums, int)
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @functools.wraps(f)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        positions = [n % len(args) for n in numbers]
        wanted = [args[n] for n in positions]
        leaves, structure = tree.tree_flatten(wanted, is_leaf=_is_sparse)

        def of_data(data: _Parts) -> Any:
            filled = [x.with_data(d) if _is_sparse(x) else d for x, d in zip(leaves, data.values, strict=True)]
            given = list(args)
            for n, x in zip(positions, tree.tree_unflatten(structure, filled), strict=True):
                given[n] = x
            return f(*given, **kwargs)

        data = _Parts(*[x.data if _is_sparse(x) else x for x in leaves])
        found = transform(of_data, **options)(data)
        values, gradients = found if value else (None, found)

        def placed(gradient: _Parts) -> Any:
            pairs = zip(leaves, gradient.values, strict=True)
            back = [x.with_data(g, stacked=stacked) if _is_sparse(x) else g for x, g in pairs]
            out = tree.tree_unflatten(structure, back)
            return out[0] if one else tuple(out)

        if stacked:
            has_aux = options.get("has_aux", False)
            results, aux = gradients if has_aux else (gradients, None)
            results = tree.tree_map(placed, results, is_leaf=lambda x: isinstance(x, _Parts))
            return (results, aux) if has_aux else results
        if value:
            return values, placed(gradients)
        if options.get("has_aux", False):
            return placed(gradients[0]), gradients[1]
        return placed(gradients)

    return derivative


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Return the gradient of a function of sparse and dense arrays, as `corejax.grad`.

    The gradient with respect to a sparse array is sparse: the derivatives with respect to its stored elements.
    """
    return _by_data(corejax.grad, fun, argnums, False, False, {"has_aux": has_aux, **kwargs})


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Return a function that gives the value and the gradient, as `corejax.value_and_grad`."""
    return _by_data(corejax.value_and_grad, fun, argnums, False, True, {"has_aux": has_aux, **kwargs})


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Return the Jacobian by forward mode; that by a sparse array is sparse, with a batch for each result."""
    return _by_data(corejax.jacfwd, fun, argnums, True, False, {"has_aux": has_aux, **kwargs})


def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Return the Jacobian by reverse mode; that by a sparse array is sparse, with a batch for each result."""
    return _by_data(corejax.jacrev, fun, argnums, True, False, {"has_aux": has_aux, **kwargs})


jacobian = jacrev
