"""Control flow in Python, for the setting `disable_jit`: functions are called, not traced.

A condition that is unknown while tracing (under `jit` or `vmap`) cannot decide in Python and is staged as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from corejax.extend import Tracer, as_array, config, host_value, tree


def in_python() -> bool:
    """Return whether control flow runs in Python."""
    return bool(config.disable_jit)


def known(x: Any) -> Any:
    """Return the value of a scalar if it is known now, else None."""
    if not isinstance(x, Tracer):
        return host_value(x)
    return x.steering()


def results(values: Any) -> Any:
    """Convert the leaves of a function's result to arrays."""
    return tree.tree_map(lambda x: x if isinstance(x, Tracer) else as_array(x), values)


def while_in_python(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], value: Any) -> tuple[bool, Any]:
    """Run a while loop as far as its condition is known.

    Returns:
        A flag, True if the loop ended, and the value of the loop.
    """
    while True:
        going_on = known(cond_fun(value))
        if going_on is None:
            return False, value
        if not going_on:
            return True, results(value)
        value = body_fun(value)


def scan_in_python(
    f: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Sequence[Any], x_tree: Any, indices: Iterable[int]
) -> tuple[Any, Any]:
    """Apply `f` for each index in order, for at least one index.

    Args:
        f: function `(carry, x) -> (carry, y)`.
        carry: the initial carry.
        xs: leaves to scan over, arrays of shape `[n, ...]`.
        x_tree: structure of the leaves.
        indices: the indices 0 to n - 1, in the order of the iterations.

    Returns:
        The last carry, and the results stacked by index.
    """
    from corejax_lax_basic import lax

    ys: dict[int, list[Any]] = {}
    y_tree: Any = None
    for i in indices:
        x = tree.tree_unflatten(x_tree, [lax.index_in_dim(leaf, i, 0, keepdims=False) for leaf in xs])
        carry, y = f(carry, x)
        ys[i], y_tree = tree.tree_flatten(results(y))
    columns = zip(*(ys[i] for i in sorted(ys)), strict=True)
    stacked = [lax.concatenate([lax.expand_dims(y, (0,)) for y in column], 0) for column in columns]
    return results(carry), tree.tree_unflatten(y_tree, stacked)
