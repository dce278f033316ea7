"""How operators call functions that use cells of enclosing functions, references say (`extend.transforms.Cell`).

Each function here is the `way` of an operator, `(operator, cell, *args, **kwargs)`: it calls the operator again with
functions that have the cell. A loop carries the cell's value; a branch or a recomputed function closes over it and
returns the last value. A rule for derivatives may read it, but not write it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend.transforms import Cell, named_as, threaded


def scan_cell(scan: Callable[..., Any], cell: Cell, f: Callable[..., Any], init: Any, *args: Any, **kwargs: Any) -> Any:
    """Call `scan` with the cell's value as a further carry."""

    @named_as(f)
    def body(carry: Any, x: Any) -> Any:
        out, last = threaded(f, [cell], carry[1:])(carry[0], x)
        # Anything but a pair is an error, which `scan` reports.
        return ((out[0], *last), out[1]) if isinstance(out, tuple | list) and len(out) == 2 else out

    (carry, value), ys = scan(body, (init, cell.get()), *args, **kwargs)
    cell.set(value)
    return carry, ys


def while_cell(
    while_loop: Callable[..., Any], cell: Cell, cond_fun: Any, body_fun: Any, init_val: Any, **kwargs: Any
) -> Any:
    """Call `while_loop` with the cell's value as a part of the loop's value."""
    cond = _reading(cell, cond_fun, "while_loop: the condition")

    @named_as(cond_fun)
    def condition(val: Any) -> Any:
        return cond(val[1])(val[0])

    @named_as(body_fun)
    def body(val: Any) -> Any:
        out, last = threaded(body_fun, [cell], val[1:])(val[0])
        return (out, *last)

    out, value = while_loop(condition, body, (init_val, cell.get()), **kwargs)
    cell.set(value)
    return out


def fori_cell(
    fori_loop: Callable[..., Any], cell: Cell, lower: Any, upper: Any, body_fun: Any, init_val: Any, **kwargs: Any
) -> Any:
    """Call `fori_loop` with the cell's value as a part of the loop's value."""

    @named_as(body_fun)
    def body(i: Any, val: Any) -> Any:
        out, last = threaded(body_fun, [cell], val[1:])(i, val[0])
        return (out, *last)

    out, value = fori_loop(lower, upper, body, (init_val, cell.get()), **kwargs)
    cell.set(value)
    return out


def branches_cell(choose: Callable[..., Any], cell: Cell, *args: Any, **kwargs: Any) -> Any:
    """Call `cond` or `switch` with branches that return the cell's value as well."""
    value = cell.get()

    def with_cell(x: Any) -> Any:
        if isinstance(x, list | tuple) and any(map(callable, x)):
            return [with_cell(branch) for branch in x]
        return named_as(x)(threaded(x, [cell], [value])) if callable(x) else x

    out, (last,) = choose(*map(with_cell, args), **{name: with_cell(x) for name, x in kwargs.items()})
    cell.set(last)
    return out


def call_cell(transform: Callable[[Callable[..., Any]], Callable[..., Any]], fun: Callable[..., Any]) -> Any:
    """Return the way of `transform(fun)`: calls `transform` of a function that returns the cell's value as well."""

    def way(operator: Callable[..., Any], cell: Cell, *args: Any, **kwargs: Any) -> Any:
        out, (last,) = transform(named_as(fun)(threaded(fun, [cell], [cell.get()])))(*args, **kwargs)
        cell.set(last)
        return out

    return way


def rules_cell(call: Callable[..., Any], cell: Cell, custom: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function with custom rules, in which function and rules read the cell."""
    value = cell.get()

    def reading(fun: Any) -> Any:
        return fun and named_as(fun)(_reading(cell, fun, f"{custom!r}: a function with custom rules")(value))

    return call(custom._with_functions(reading), *args, **kwargs)


def _reading(cell: Cell, fun: Callable[..., Any], what: str) -> Callable[[Any], Callable[..., Any]]:
    """Return a function of the cell's value that returns `fun` with it; `fun` raises ValueError if it writes."""

    def with_value(value: Any) -> Callable[..., Any]:
        def read(*args: Any, **kwargs: Any) -> Any:
            out, (last,) = threaded(fun, [cell], [value])(*args, **kwargs)
            if last is not value:
                raise ValueError(f"{what} may read {cell!r}, but not write it: write it outside, from the result")
            return out

        return read

    return with_value
