"""Functions made of many primitives, recorded as programs: eager calls of the same types run on NumPy end to end.

    remembered : (arrays -> arrays) -> (arrays -> arrays)

The first call with operands of some types runs the function. The second one records it as a program and generates a
function from that, which later calls run; programs that are long or large run equation by equation. Under a
transformation, and while the thread is watched, the function itself runs, as if it were not remembered.

A call with large operands or results is compiled as one program, from the first call on. Calls that differ in Python
numbers have other programs each, up to `_MOST`; floats and complex numbers are operands instead, if the function was
marked so (`remembered(numbers=True)`) and they are rounded alike as operands.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np

from corejax.extend import (
    Array,
    ClosedJaxpr,
    Jaxpr,
    Tracer,
    as_array,
    config,
    dtypes,
    eval_jaxpr_on_host,
    get_aval,
    stage_closed,
    tree,
)
from corejax.extend.devices import checks_values, is_spread
from corejax.extend.messages import observe
from corejax.extend.programs import keep_all
from corejax.extend.speed import bottom, quiet, run_quietly, source_info, state
from corejax_eager import codegen, large
from corejax_eager.cache import Cache

_LIMIT = 512  # programs of one function
_LARGEST_KNOWN = 1 << 20  # bytes of values that a program keeps; above it computes them each time
_LARGEST_COPIED = 1 << 14  # bytes of a result that is an argument
_MOST = 8  # programs for calls that differ in numbers only: compiling one costs as much as many calls by NumPy

_PLAIN = frozenset({int, bool, str, type(None), type(Ellipsis)})
_ARRAYS = frozenset({Array})
_NUMBERS = frozenset({float, complex})  # integers say what is computed as often as not
_OTHER_FLOATS = frozenset(
    d for d in dtypes.LONG_NAMES.values() if dtypes.is_inexact(d) and d not in (np.float32, np.complex64)
)
_Function = type(lambda: None)
_MISSING = object()  # what is found of a call that has not been met


def remember(fun: Callable[..., Any], ufunc: np.ufunc | None, ufunc_of: str, numbers: bool) -> Callable[..., Any]:
    """Wrap a function that was marked `remembered`; the arguments are as there."""
    remembered = _Remembered(fun, ufunc, ufunc_of, numbers)
    programs = remembered.programs

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if state.trace is not bottom or observe.watched:
            return fun(*args, **kwargs)
        settings = _settings
        if settings is None:
            settings = _number_settings()
        key: list[Any] = [settings]
        arrays: list[Array] = []
        for x in args:
            if type(x) is Array:
                key.append(x.aval)
                arrays.append(x)
            elif not _describe(x, key, arrays):
                return fun(*args, **kwargs)
        for name in kwargs:
            key.append(name)
            if not _describe(kwargs[name], key, arrays):
                return fun(*args, **kwargs)
        exact = tuple(key)
        found = programs.get(exact, _MISSING)
        if type(found) is _Function:
            try:
                return (quiet.run or quiet.new())(found, *arrays)
            except Exception:  # the function's own error names the lines of this call
                return fun(*args, **kwargs)
        if found is False:
            return fun(*args, **kwargs)
        return remembered.early_call(args, kwargs, arrays, exact, found is None)

    return call


class _Remembered:
    """A remembered function.

    Attributes:
        fun, ufunc, ufunc_of, numbers: the arguments of `remembered`.
        programs: for the types and static arguments of a call (its key), the function of its arrays that does what the
            call does; None if the call has run once; False if `fun` itself has to run. For the types alone, with a
            structure for the arguments, the compiled programs by Python numbers; see `compiled_call`.
    """

    def __init__(self, fun: Callable[..., Any], ufunc: np.ufunc | None, ufunc_of: str, numbers: bool) -> None:
        self.fun = fun
        self.ufunc = ufunc
        self.ufunc_of = ufunc_of
        self.numbers = numbers
        self.programs = Cache(_LIMIT)

    def early_call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: Sequence[Array], key: tuple[Any, ...], again: bool
    ) -> Any:
        """Run the function, and record it if the call has come `again`; or run it as a compiled program."""
        out: Any = _MISSING
        wide = _any_large(arrays)
        if not wide:
            out = self.fun(*args, **kwargs)  # an error is no reason to remember
            wide = _any_large(tree.leaves(out))
        if wide and (compiled := self.compiled_call(args, kwargs, key, again)) is not _MISSING:
            return compiled
        if out is _MISSING:
            out = self.fun(*args, **kwargs)
        self.programs.store(key, self.recorded(args, kwargs, arrays) if again else None)
        return out

    def recorded(self, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: Sequence[Array]) -> Any:
        """Return the function of its arrays that does what a call does.

        False if the call needs values, has effects, warns, returns anything but arrays, or a large argument: results
        are copied, because each array has memory of its own.
        """
        staged = _staged(self.fun, *tree.flatten((args, kwargs)), _ARRAYS)
        if staged is None:
            return False
        closed, structure = staged
        avals = closed.out_avals
        jaxpr, known = _with_known_values(closed)
        made = {v for eqn in jaxpr.eqns for v in eqn.outvars}
        given = [i for i, v in enumerate(jaxpr.outvars) if v not in made]
        if any(avals[i].nbytes > _LARGEST_COPIED for i in given):
            return False
        if not checks_values():
            of_arrays = len(arrays) == len(args) and not kwargs
            ufunc = self.ufunc if of_arrays and self._runs_ufunc(arrays) else None
            function = codegen.generate_on_arrays(jaxpr, known, avals, structure, ufunc)
            if function is not None:
                return function

        def by_equations(*arrays: Array) -> Any:
            outs = bottom.run_program(jaxpr, [*known, *map(codegen.host_of, arrays)])
            for i in given:
                outs[i] = outs[i].copy()
            return _put_together(structure, [Array(o, aval) for o, aval in zip(outs, avals, strict=True)])

        return by_equations

    def _runs_ufunc(self, arrays: Sequence[Array]) -> bool:
        if self.ufunc_of and not (arrays and arrays[0].aval.dtype.char in self.ufunc_of):
            return False
        # Some narrow floats have no signs of zeros.
        return not any(x.aval.dtype.kind == "V" and x.aval.dtype.itemsize == 1 for x in arrays)

    def compiled_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], key: tuple[Any, ...], again: bool) -> Any:
        """Run a call with large operands or results as a compiled program; `_MISSING` if that is not worth it.

        A program that rounds nothing is compiled only if the call has come `again`.
        """
        leaves, structure = tree.flatten((args, kwargs))
        taken = _ARRAYS | _NUMBERS if self.numbers and _are_rounded_alike(leaves) else _ARRAYS
        counted = _NUMBERS | {int}
        kinds = [x.aval if type(x) is Array else type(x) if type(x) in counted else x for x in leaves]
        numbers = tuple([repr(x) for x in leaves if type(x) in counted and type(x) not in taken])  # -0.0 is not 0.0
        try:
            operands = [as_array(x) for x in leaves if type(x) in taken]
            variants = self.programs.get((key[0], structure, *kinds))
            if variants is None:
                variants = self.programs.store((key[0], structure, *kinds), {})
        except (TypeError, OverflowError):  # what has no hash; a number that the function knows what to do with
            return _MISSING
        found = variants.get(numbers)
        if found is None and len(variants) < _MOST:
            found = variants[numbers] = self.compilable(leaves, structure, taken)
        if not found:
            return _MISSING
        run, is_exact = found
        if is_exact and not again:
            return _MISSING
        if taken is _ARRAYS:
            self.programs.store(key, run)
        try:
            return run(*operands)
        except Exception:  # the function's own error names the lines of this call
            return self.fun(*args, **kwargs)

    def compilable(self, leaves: Sequence[Any], structure: Any, taken: frozenset[type]) -> Any:
        """Record a call as a program of the leaves of some types, which is compiled when it first runs.

        Returns:
            The function that runs it, and whether it rounds nothing; False if compiling does not pay.
        """
        staged = _staged(self.fun, leaves, structure, taken)
        if staged is None or not large.is_worth_fusing(staged[0]):
            return False
        program, out_tree = staged
        name = getattr(self.fun, "__name__", "remembered")

        def compiled(*arrays: Array) -> Any:
            if any(x._host is None and is_spread(x) for x in arrays):
                raise ValueError("on several devices")
            outs = large.run_program(program, [*arrays], name)
            if outs is None:
                raise RuntimeError("nothing compiles")
            return _put_together(out_tree, outs)

        return compiled, large.is_exact(program)


def _any_large(values: Sequence[Any]) -> bool:
    return any(type(x) is Array and x.aval.size >= large.SIZE for x in values)


def _are_rounded_alike(leaves: Sequence[Any]) -> bool:
    """Tell whether numbers of Python's are rounded as arrays are: to float32 at once, beside others."""
    return not any(type(x) is Array and x.aval.dtype in _OTHER_FLOATS for x in leaves)


def _put_together(structure: Any, arrays: Sequence[Array]) -> Any:
    return arrays[0] if structure is None else tree.unflatten(structure, arrays)


def _staged(
    fun: Callable[..., Any], leaves: Sequence[Any], structure: Any, taken: frozenset[type]
) -> tuple[ClosedJaxpr, Any] | None:
    """Return a call as a program of the leaves of some types, and the structure of its results (None for one array)."""
    where = [i for i, x in enumerate(leaves) if type(x) in taken]
    out_tree: Any = None

    def flat(*tracers: Any) -> list[Any]:
        nonlocal out_tree
        given = list(leaves)
        for i, tracer in zip(where, tracers, strict=True):
            given[i] = tracer
        called, named = tree.unflatten(structure, given)
        out = fun(*called, **named)
        outs, out_tree = tree.flatten(out)
        if not all(type(x) is Array or isinstance(x, Tracer) for x in outs):
            raise TypeError("not arrays")
        if isinstance(out, Array):
            out_tree = None
        return outs

    warned = source_info.warnings_given[0]
    try:
        closed = stage_closed(flat, [get_aval(leaves[i]) for i in where])
    except Exception:
        return None
    return None if closed.jaxpr.effects or source_info.warnings_given[0] != warned else (closed, out_tree)


def _with_known_values(closed: ClosedJaxpr) -> tuple[Jaxpr, list[Any]]:
    """The program without what depends on no argument, and the values of its constants and of that."""
    # In no first operation, as nothing is recorded then.
    from corejax.extend import partial_eval_jaxpr

    # What is known is computed once, and what depends on it often.
    known, unknown, _, count = partial_eval_jaxpr(closed, [True] * len(closed.in_avals), True, keep_all)
    if sum(aval.nbytes for aval in known.out_avals) > _LARGEST_KNOWN:
        return closed.jaxpr, _on_host(closed.consts)
    values = run_quietly(eval_jaxpr_on_host, known, ())
    return unknown.jaxpr, _on_host([*unknown.consts, *values[len(values) - count :]])


def _on_host(values: list[Any]) -> list[Any]:
    return [as_array(x)._fetch() for x in values]


def _describe(x: Any, key: list[Any], arrays: list[Array]) -> bool:
    """Add an argument to the key of a call, and its arrays; False if it cannot be told from others."""
    kind = type(x)
    if kind is Array:
        key.append(x.aval)
        arrays.append(x)
    elif kind in _PLAIN or isinstance(x, type | Enum | np.dtype):
        key.append(kind)
        key.append(x)
    elif kind is float:
        key.append(x.hex())  # -0.0 is another one than 0.0
    elif kind is tuple or kind is list:
        key.append(kind)
        key.append(len(x))
        return all(_describe(item, key, arrays) for item in x)
    elif kind is slice:
        key.append(kind)
        return all(_describe(item, key, arrays) for item in (x.start, x.stop, x.step))
    else:
        return False
    return True


def _number_settings() -> int:
    """Number the settings in force: programs are found again when the same settings come back."""
    global _settings
    number = next(_fresh)
    with contextlib.suppress(TypeError):  # a value that has no hash: the programs are not found again
        number = _numbers.setdefault(tuple(config.values().values()), number)
    _settings = number
    return number


def _follow_settings() -> None:
    """Leave the number to the next call: many changes are taken back before there is one."""
    global _settings
    _settings = None


_settings: int | None = None
_fresh = itertools.count()
_numbers: dict[tuple[Any, ...], int] = {}
config.changed.connect(_follow_settings)
