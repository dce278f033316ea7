"""The engine: a layer in front of evaluation that takes the fastest path with the same bits.

An operation with a specialised function goes directly from the arrays to NumPy and back (`specialise`). A large
operation is compiled if that is faster (`large`). The kernel evaluates all other operations, and those that fail, so
that its error messages are used. While a thread is watched, the engine handles only large operations, because watchers
receive an event for each rule that runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from corejax.extend import Array, BackendError, Primitive
from corejax.extend.devices import is_spread
from corejax.extend.messages import observe
from corejax.extend.speed import (
    Engine,
    Evaluate,
    Layer,
    check_size,
    evaluation,
    promised,
    quiet,
    run_impl,
    set_layer,
)
from corejax_eager import large, rule_memo
from corejax_eager.codegen import run_by_equations, run_generated
from corejax_eager.remembered import remember
from corejax_eager.specialise import Ufunc, note_run, operations, specialised


def _in_front(below: Evaluate) -> Evaluate:
    """Return the evaluation of the unwatched layer; `below` is the kernel's."""
    find = operations.get

    def process(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        # Ufuncs of one and two operands are called directly from here, because most eager operations take this path.
        try:
            if len(args) == 2 and not params:
                x, y = args
                if type(x) is Array and type(y) is Array:
                    entry: Any = find((primitive, x.aval, y.aval))
                    if type(entry) is Ufunc and (a := x._host) is not None and (b := y._host) is not None:
                        return [Array((quiet.run or quiet.new())(entry.call, a, b), entry.aval)]
            elif len(args) == 1 and not params:
                [x] = args
                if type(x) is Array:
                    entry = find((primitive, x.aval))
                    if type(entry) is Ufunc and (a := x._host) is not None:
                        return [Array((quiet.run or quiet.new())(entry.call, a), entry.aval)]
            function = None if primitive.multiple_results else specialised(primitive, args, params)
            if function is not None:
                return [(quiet.run or quiet.new())(function, *args)]
        except Exception:  # the kernel evaluates the operation again, and its error names the user's line
            return below(primitive, args, params)
        return _evaluate(below, primitive, args, params)

    return process


def _evaluate(below: Evaluate, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Evaluate an operation that is not specialised, compiled if it is large; count the run unless it is watched."""
    impl = evaluation.host_rule(primitive)
    if impl is None:
        return below(primitive, args, params)
    arrays = [x if type(x) is Array else evaluation.as_operand(primitive, x) for x in args]
    avals = tuple([x.aval for x in arrays])
    avals_out = promised(primitive, avals, params)
    if not avals_out:
        return below(primitive, arrays, params)
    for aval in avals_out:
        check_size(primitive, aval)
    rule = large.compiled_rule(primitive, avals, avals_out, params)
    if rule is not None and not any(is_spread(x) for x in arrays):
        try:
            return evaluation.box_results(run_impl(rule, primitive, arrays, params, avals_out))
        except BackendError:  # the program cannot run here, in a forked process for example
            return below(primitive, arrays, params)
    if not observe.watched and not primitive.multiple_results:
        entry = note_run(primitive, avals, params, avals_out[0])
        if type(entry) is Ufunc:
            impl = entry.call
    return evaluation.evaluate_arrays(impl, primitive, arrays, params, avals_out)


_UNWATCHED = Layer(_in_front, lambda below: run_generated)
_WATCHED = Layer(lambda below: partial(_evaluate, below), lambda below: run_by_equations)


class _Eager(Engine):
    """The engine that the plugin provides to the kernel."""

    @property
    def layer(self) -> Layer:
        """The layer in front of evaluation, which depends on whether the thread is watched."""
        return _WATCHED if observe.watched else _UNWATCHED

    remember = staticmethod(remember)
    run_program = staticmethod(large.run_program)
    run_compiled = staticmethod(large.run_compiled)
    comes_again = staticmethod(large.comes_again)
    records = staticmethod(rule_memo.records)
    replay = staticmethod(rule_memo.replay)


ENGINE = _Eager()


# Make glibc keep the memory of freed large arrays for new ones. By default glibc returns blocks of more than 128 KiB to
# the operating system, which clears every page of the next block; that takes several times as long as most operations.
# After a larger block is freed, glibc takes blocks up to that size, at most 32 MiB, from its heap (mallopt(3),
# M_MMAP_THRESHOLD). So one block of that size is allocated and freed here.
with suppress(MemoryError):  # the process may have a lower limit
    np.empty((32 << 20) - (8 << 10), np.uint8)


def _on_watched_changed() -> None:
    """Install the layer for a watched or unwatched thread, and drop the entries of single operations."""
    operations.clear()
    set_layer("engine", ENGINE.layer)


observe.watched_changed.connect(_on_watched_changed)
