"""Functions of many primitives that are traced and cached, so that eager calls run on NumPy from end to end.

    remembered : (arrays -> arrays) -> (arrays -> arrays)

The first call with operands of some types runs the function. The second call traces it to a program and generates a
Python function from the program, which later calls run; a long or large program runs equation by equation. Under a
transformation, and while the thread is watched, the original function runs, as if it were not remembered.

A call with large operands or results is compiled as one program, from the first call on. Calls that differ in Python
numbers have separate programs, up to `_MAX_VARIANTS`. Floats and complex numbers are operands instead if the function
allows it (`remembered(numbers=True)`) and the numbers round in the same way as operands.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeVar

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
from corejax.extend.messages import did_you_mean, observe
from corejax.extend.programs import keep_all
from corejax.extend.speed import bottom, evaluation, quiet, run_quietly, source_info, state
from corejax_eager import codegen, large
from corejax_eager.cache import Cache

F = TypeVar("F", bound=Callable[..., Any])

_LIMIT = 512  # programs of one function
_MAX_KNOWN_BYTES = 1 << 20  # bytes of constant values that a program keeps; larger values are computed at each call
_MAX_COPIED_BYTES = 1 << 14  # bytes of a result that is a copy of an argument
_MAX_VARIANTS = 8  # programs for calls that differ in numbers only; compiling one costs as much as many NumPy calls

_PLAIN = frozenset({int, bool, str, type(None), type(Ellipsis)})
_ARRAYS = frozenset({Array})
_NUMBERS = frozenset({float, complex})  # not integers, which are often axes or sizes
_OTHER_FLOATS = frozenset(
    d for d in dtypes.LONG_NAMES.values() if dtypes.is_inexact(d) and d not in (np.float32, np.complex64)
)
_Function = type(lambda: None)
_MISSING = object()  # the entry of a call that is not in the cache


def remember(fun: F, ufunc: np.ufunc | None, ufunc_of: str, numbers: bool) -> F:
    """Wrap a function that is marked `remembered`; the arguments are those of `remembered`."""
    programs = Cache(_LIMIT)
    find = programs.get
    remembered = _Remembered(fun, ufunc, ufunc_of, numbers, programs)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if state.trace is not bottom or observe.watched:
            return fun(*args, **kwargs)
        key: list[Any] = [_settings or _number_settings()]
        arrays: list[Array] = []
        for x in args:
            if type(x) is Array:
                key.append(x.aval)
                arrays.append(x)
            elif not _describe(x, key, arrays):
                return fun(*args, **kwargs)
        for name in kwargs if len(kwargs) < 2 else sorted(kwargs):  # the order in which pytrees flatten them
            key.append(name)
            if not _describe(kwargs[name], key, arrays):
                return fun(*args, **kwargs)
        exact = tuple(key)
        entry = find(exact, _MISSING)
        if type(entry) is _Function:
            try:
                return (quiet.run or quiet.new())(entry, *arrays)
            except Exception:  # the original function's error names the lines of this call
                return fun(*args, **kwargs)
        if entry is False:
            return fun(*args, **kwargs)
        try:
            return remembered.call_uncached(args, kwargs, arrays, exact, entry is None)
        except TypeError as error:
            _suggest_argument(error, fun, kwargs)
            raise

    wrapped: Any = call
    return wrapped  # type: ignore[no-any-return]  # a function of any arguments has every signature


def _suggest_argument(error: TypeError, fun: Callable[..., Any], kwargs: dict[str, Any]) -> None:
    """Append a close name to Python's error for a keyword argument that `fun` lacks, as Python 3.13 does."""
    match = re.search(r"\(\) got an unexpected keyword argument '(\w+)'$", str(error))
    known = inspect.signature(fun).parameters
    if match is not None and match[1] in kwargs and match[1] not in known:
        error.args = (f"{error}{did_you_mean(match[1], known)}",)


class _Remembered(NamedTuple):
    """A remembered function.

    Attributes:
        fun, ufunc, ufunc_of, numbers: the arguments of `remembered`.
        programs: a cache with two kinds of keys. The types and static arguments of a call map to the function of its
            arrays that replaces the call, None if the call has run once, or False if `fun` itself has to run. The types
            alone, with the structure of the arguments, map to the compiled programs by Python numbers
            (`compiled_call`).
    """

    fun: Callable[..., Any]
    ufunc: np.ufunc | None
    ufunc_of: str
    numbers: bool
    programs: Cache

    def call_uncached(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: Sequence[Array], key: tuple[Any, ...], again: bool
    ) -> Any:
        """Run a call that has no function in the cache yet.

        A call with large arrays runs as a compiled program if that pays. Otherwise the original function runs, and is
        traced if the call has come `again`.
        """
        out: Any = _MISSING
        is_large = _any_large(arrays)
        if not is_large:
            out = self.fun(*args, **kwargs)  # a call that raises an error is not cached
            is_large = _any_large(tree.leaves(out))
        if is_large and (compiled := self.compiled_call(args, kwargs, key, again)) is not _MISSING:
            return compiled
        if out is _MISSING:
            out = self.fun(*args, **kwargs)
        self.programs.store(key, self.trace_call(args, kwargs, arrays) if again else None)
        return out

    def trace_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: Sequence[Array]) -> Any:
        """Trace a call, and return the function of its arrays that replaces the call.

        The result is False if the call needs values, has effects, warns, or returns anything but arrays. It is also
        False if the call returns a large argument, because results are copied to have memory of their own.
        """
        staged = _stage_call(self.fun, *tree.flatten((args, kwargs)), _ARRAYS)
        if staged is None:
            return False
        closed, structure = staged
        avals = closed.out_avals
        jaxpr, known = _with_known_values(closed)
        computed = {v for eqn in jaxpr.eqns for v in eqn.outvars}
        forwarded = [i for i, v in enumerate(jaxpr.outvars) if v not in computed]
        if any(avals[i].nbytes > _MAX_COPIED_BYTES for i in forwarded):
            return False
        if not checks_values():
            only_arrays = len(arrays) == len(args) and not kwargs
            ufunc = self.ufunc if only_arrays and self._runs_ufunc(arrays) else None
            function = codegen.generate_on_arrays(jaxpr, known, avals, structure, ufunc)
            if function is not None:
                return function

        def by_equations(*arrays: Array) -> Any:
            outs = bottom.run_program(jaxpr, [*known, *map(codegen.host_of, arrays)])
            for i in forwarded:
                outs[i] = outs[i].copy()
            return tree.unflatten(structure, [evaluation.boxed(o, aval) for o, aval in zip(outs, avals, strict=True)])

        return by_equations

    def _runs_ufunc(self, arrays: Sequence[Array]) -> bool:
        """Return whether the function's ufunc may replace it for arrays of these dtypes."""
        if self.ufunc_of and not (arrays and arrays[0].aval.dtype.char in self.ufunc_of):
            return False
        # Not for 8-bit floats, because some of them have no negative zero.
        return not any(x.aval.dtype.kind == "V" and x.aval.dtype.itemsize == 1 for x in arrays)

    def compiled_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], key: tuple[Any, ...], again: bool) -> Any:
        """Run a call with large operands or results as a compiled program; return `_MISSING` if that does not pay.

        A program that rounds nothing is compiled only if the call has come `again`.
        """
        leaves, structure = tree.flatten((args, kwargs))
        operand_types = _ARRAYS | _NUMBERS if self.numbers and _has_operands(leaves) else _ARRAYS
        number_types = _NUMBERS | {int}
        kinds = [x.aval if type(x) is Array else type(x) if type(x) in number_types else x for x in leaves]
        # By `repr`, because -0.0 and 0.0 are different numbers.
        numbers = tuple([repr(x) for x in leaves if type(x) in number_types and type(x) not in operand_types])
        try:
            operands = [as_array(x) for x in leaves if type(x) in operand_types]
            variants = self.programs.get((key[0], structure, *kinds))
            if variants is None:
                variants = self.programs.store((key[0], structure, *kinds), {})
        except (TypeError, OverflowError):  # an argument has no hash, or a number fits no dtype
            return _MISSING
        variant = variants.get(numbers)
        if variant is None and len(variants) < _MAX_VARIANTS:
            variant = variants[numbers] = self.compilable(leaves, structure, operand_types)
        if not variant:
            return _MISSING
        run, is_exact = variant
        if is_exact and not again:
            return _MISSING
        if operand_types is _ARRAYS:
            self.programs.store(key, run)
        try:
            return run(*operands)
        except Exception:  # the original function's error names the lines of this call
            return self.fun(*args, **kwargs)

    def compilable(self, leaves: Sequence[Any], structure: Any, operand_types: frozenset[type]) -> Any:
        """Trace a call to a program of the leaves of some types, which is compiled when it first runs.

        Returns:
            The function that runs the program, and whether it rounds nothing; False if compiling does not pay.
        """
        staged = _stage_call(self.fun, leaves, structure, operand_types)
        if staged is None or not large.is_worth_fusing(staged[0]):
            return False
        program, out_tree = staged
        name = getattr(self.fun, "__name__", "remembered")

        def compiled(*arrays: Array) -> Any:
            if any(is_spread(x) for x in arrays):
                raise ValueError("on several devices")
            outs = large.run_program(program, [*arrays], name)
            if outs is None:
                raise RuntimeError("no backend compiles the program")
            return tree.unflatten(out_tree, outs)

        return compiled, large.is_exact(program)


def _any_large(values: Sequence[Any]) -> bool:
    """Return whether a value is a large array."""
    return any(type(x) is Array and x.aval.size >= large.SIZE for x in values)


def _has_operands(leaves: Sequence[Any]) -> bool:
    """Return whether there are Python numbers that round as operands do: to float32, as all arrays of the call do."""
    other_floats = any(type(x) is Array and x.aval.dtype in _OTHER_FLOATS for x in leaves)
    return not other_floats and any(type(x) in _NUMBERS for x in leaves)


def _stage_call(
    fun: Callable[..., Any], leaves: Sequence[Any], structure: Any, operand_types: frozenset[type]
) -> tuple[ClosedJaxpr, Any] | None:
    """Stage a call as a program of the leaves of some types.

    Returns:
        The program, and the structure of its results. None if the call cannot be staged, has effects or warns.
    """
    positions = [i for i, x in enumerate(leaves) if type(x) in operand_types]
    out_tree: Any = None

    def flat(*tracers: Any) -> list[Any]:
        nonlocal out_tree
        all_leaves = list(leaves)
        for i, tracer in zip(positions, tracers, strict=True):
            all_leaves[i] = tracer
        args, kwargs = tree.unflatten(structure, all_leaves)
        outs, out_tree = tree.flatten(fun(*args, **kwargs))
        if not all(type(x) is Array or isinstance(x, Tracer) for x in outs):
            raise TypeError("not arrays")
        return outs

    warned = source_info.warnings_given[0]
    try:
        closed = stage_closed(flat, [get_aval(leaves[i]) for i in positions])
    except Exception:
        return None
    return None if closed.jaxpr.effects or source_info.warnings_given[0] != warned else (closed, out_tree)


def _with_known_values(closed: ClosedJaxpr) -> tuple[Jaxpr, list[Any]]:
    """Return a program without the equations that depend on no argument, and the values of its constants.

    The constants include the results of the removed equations, which are computed once.
    """
    # Imported here, because the first operations of a process do not trace anything.
    from corejax.extend import partial_eval_jaxpr

    known, unknown, _, count = partial_eval_jaxpr(closed, [True] * len(closed.in_avals), True, keep_all)
    if sum(aval.nbytes for aval in known.out_avals) > _MAX_KNOWN_BYTES:
        return closed.jaxpr, _on_host(closed.consts)
    values = run_quietly(eval_jaxpr_on_host, known, ())
    return unknown.jaxpr, _on_host([*unknown.consts, *values[len(values) - count :]])


def _on_host(values: list[Any]) -> list[Any]:
    """Return values as NumPy arrays."""
    return [as_array(x)._fetch() for x in values]


def _describe(x: Any, key: list[Any], arrays: list[Array]) -> bool:
    """Append an argument to the key of a call, and its arrays to `arrays`; return False if it has no exact key."""
    kind = type(x)
    if kind is Array:
        key.append(x.aval)
        arrays.append(x)
    elif kind is float:
        key.append(x.hex())  # -0.0 and 0.0 are equal, but have different texts
    elif kind in _PLAIN or isinstance(x, (type, Enum, np.dtype)):
        key.append(kind)
        key.append(x)
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
    """Return the number of the settings in force; equal settings have one number, so that their programs are reused."""
    global _settings
    number = next(_fresh)
    with contextlib.suppress(TypeError):  # if a setting has no hash, the number is new and programs are not reused
        number = _numbers.setdefault(tuple(config.values().values()), number)
    _settings = number
    return number


def _follow_settings() -> None:
    """Drop the number of the settings; the next call computes it, because many changes are undone before a call."""
    global _settings
    _settings = 0


_settings = 0
_fresh = itertools.count(1)
_numbers: dict[tuple[Any, ...], int] = {}
config.changed.connect(_follow_settings)
