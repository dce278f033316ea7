"""Functions made of many primitives, recorded as programs: eager calls of the same types run on NumPy end to end.

    remembered : (arrays -> arrays) -> (arrays -> arrays)

The first call with operands of some types runs the function. The second one records it; later ones run the program,
which costs what its impl rules cost, and then a function generated from it. Under a transformation, and while the
thread is watched, the function itself runs, as if it were not remembered.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import (
    Array,
    ClosedJaxpr,
    Jaxpr,
    as_array,
    checks_values,
    clears_cache,
    config,
    eval_jaxpr_on_host,
    is_spread,
    keep_all,
    observe,
    tree,
)
from corejax.extend.speed import bottom, evaluation, quiet, rules_changed, run_quietly, state
from corejax_eager import codegen, large, plans
from corejax_eager.fused import (
    ARRAYS,
    LIMIT,
    MISSING,
    CompiledCall,
    fused_call,
    staged,
)

_LARGEST_KNOWN = 1 << 20  # bytes of values that a program keeps; above it computes them each time
_LARGEST_COPIED = 1 << 14  # bytes of a result that is an argument
_PLAIN = frozenset({int, bool, str, type(None), type(Ellipsis), type})
_Function = type(lambda: None)
_tables: dict[int, weakref.ref[_Calls]] = {}  # of all functions that there are, by id


class _Calls(dict[Any, Any]):
    """What is remembered of one function: types and static arguments -> see `_slow_call`."""

    __slots__ = ("__weakref__",)


def _known_tables() -> list[_Calls]:
    return [programs for table in list(_tables.values()) if (programs := table()) is not None]


class _CachedCall:
    """A recorded call, run by NumPy.

    Attributes:
        jaxpr: the program without what depends on no argument.
        known: NumPy arrays, its constants and then its first arguments.
        given: which results no equation makes.
        avals: types of the results.
        tree: how they are put together; None for one array.
        runs: how often it was run, until a function is generated.
    """

    __slots__ = ("avals", "given", "jaxpr", "known", "runs", "tree")

    def __init__(self, closed: ClosedJaxpr, structure: Any) -> None:
        self.avals = closed.out_avals
        self.tree = structure
        self.jaxpr, self.known = _with_known_values(closed)
        made = {v for eqn in self.jaxpr.eqns for v in eqn.outvars}
        self.given = [i for i, v in enumerate(self.jaxpr.outvars) if v not in made]
        self.runs = 0

    def run(self, arrays: Sequence[Array]) -> Any:
        """The results for operands of the recorded types.

        Raises:
            ValueError: an operand's parts are on several devices, where the results are to be.
        """
        self.runs += 1
        values = _host_values(self.known.copy(), arrays)
        run = quiet.run or quiet.new()
        outs = run(bottom.run_program, self.jaxpr, values)
        for i in self.given:  # each array has memory of its own: it may be donated
            outs[i] = outs[i].copy()
        arrays = [Array(o, aval) for o, aval in zip(outs, self.avals, strict=True)]
        return arrays[0] if self.tree is None else tree.unflatten(self.tree, arrays)

    def generated(self) -> Callable[..., Any] | None:
        """Generate a function of the operands that does the same; None before the program has run a few times."""
        if self.runs < plans.RUNS - 1:
            return None
        self.runs = 0
        if checks_values():
            return None
        function = codegen.generate_on_arrays(self.jaxpr, self.known, self.avals, self.tree)
        if function is not None:
            vars(function)["program"] = self
        return function


def _host_values(values: list[Any], arrays: Sequence[Array]) -> list[Any]:
    """Values, and then those of arrays.

    Raises:
        ValueError: parts of one are on several devices.
    """
    for x in arrays:
        host = x._host
        if host is None:
            if is_spread(x):
                raise ValueError("on several devices")
            host = x._fetch()
        values.append(host)
    return values


def _with_known_values(closed: ClosedJaxpr) -> tuple[Jaxpr, list[Any]]:
    """The program without what depends on no argument, and the values of its constants and of that."""
    # In no first operation, as nothing is recorded then.
    from corejax.extend import partial_eval_jaxpr

    # What is known is computed once, and what depends on it often.
    known, unknown, _, count = partial_eval_jaxpr(closed, [True] * len(closed.in_avals), True, keep_all)
    if sum(aval.nbytes for aval in known.out_avals) > _LARGEST_KNOWN:
        return closed.jaxpr, _on_host(closed.consts)
    values = run_quietly(eval_jaxpr_on_host, (known, ()))
    return unknown.jaxpr, _on_host([*unknown.consts, *values[len(values) - count :]])


def _on_host(values: list[Any]) -> list[Any]:
    return [as_array(x)._fetch() for x in values]


def remember(fun: Callable[..., Any], ufunc: np.ufunc | None, ufunc_of: str, numbers: bool) -> Callable[..., Any]:
    """Wrap a function that was marked `remembered`; the arguments are as there."""
    given = _Options(ufunc, ufunc_of, numbers)
    programs = _Calls()
    where = id(programs)
    _tables[where] = weakref.ref(programs, lambda _: _tables.pop(where, None))

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if state.trace is not bottom or observe.watched:
            return fun(*args, **kwargs)
        settings = _settings
        if settings is None:
            settings = _number_settings()
        arrays: Sequence[Array] = args
        exact: tuple[Any, ...]
        if kwargs or len(args) > 2:
            count = 0
        else:
            count = len(args)
            for x in args:
                if type(x) is not Array:
                    count = 0
                    break
        if count == 1:  # for one and two arrays, which most calls take, without a loop
            exact = (settings, args[0].aval)
        elif count:
            exact = (settings, args[0].aval, args[1].aval)
        else:
            key: list[Any] = [settings]
            arrays = []
            if not _described(args, kwargs, key, arrays):
                return fun(*args, **kwargs)
            exact = tuple(key)
        found = programs.get(exact, MISSING)
        if type(found) is _Function:
            try:
                return (quiet.run or quiet.new())(found, *arrays)
            except Exception:  # the function's own error names the lines of this call
                return fun(*args, **kwargs)
        if found is False:
            return fun(*args, **kwargs)
        return _slow_call(fun, args, kwargs, arrays, programs, exact, found, given)

    return call


class _Options(NamedTuple):
    """The arguments of `remembered`."""

    ufunc: np.ufunc | None
    ufunc_of: str
    numbers: bool


def _slow_call(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    arrays: Sequence[Array],
    programs: dict[Any, Any],
    exact: tuple[Any, ...],
    found: Any,
    given: _Options,
) -> Any:
    """Handle a call for which no function has been generated."""
    wide = (found is MISSING or found is None) and any(x.aval.size >= large.SIZE for x in arrays)
    if wide:
        whole, taken = fused_call(fun, args, kwargs, programs, exact, found is None, given.numbers)
        if whole is not MISSING:
            found, arrays = whole, taken
    if type(found) is _CachedCall or type(found) is CompiledCall:
        try:
            out = found.run(arrays)
        except Exception:  # the function's own error names the lines of this call
            return fun(*args, **kwargs)
        if type(found) is _CachedCall and (function := found.generated()) is not None:
            programs[exact] = function
        return out
    if found is None:
        found = _recorded(fun, args, kwargs)
        if not wide and _is_large(found):
            whole, taken = fused_call(fun, args, kwargs, programs, exact, True, given.numbers)
            if whole is not MISSING:
                return _slow_call(fun, args, kwargs, taken, programs, exact, whole, given)
        if given.ufunc is not None and not kwargs and len(arrays) == len(args):
            found = _as_ufunc(given.ufunc, given.ufunc_of, arrays, found)
        programs[exact] = found
        return fun(*args, **kwargs)
    if found is MISSING:
        out = fun(*args, **kwargs)  # an error is no reason to remember
        if len(programs) >= LIMIT:
            programs.clear()
        programs[exact] = None
        if not wide and type(out) is Array and out.aval.size >= large.SIZE:  # of small operands
            whole, taken = fused_call(fun, args, kwargs, programs, exact, False, given.numbers)
            if whole is not MISSING:
                return _slow_call(fun, args, kwargs, taken, programs, exact, whole, given)
        return out
    return fun(*args, **kwargs)


def _is_large(found: _CachedCall | bool) -> bool:
    return type(found) is _CachedCall and any(aval.size >= large.SIZE for aval in found.avals)


def _as_ufunc(ufunc: np.ufunc, codes: str, arrays: Sequence[Array], found: Any) -> Any:
    """A recorded call as a ufunc, if that gives results of the same types, while nothing looks for NaNs."""
    if codes and not (arrays and arrays[0].aval.dtype.char in codes):
        return found
    if any(x.aval.dtype.kind == "V" and x.aval.dtype.itemsize == 1 for x in arrays):  # some have no signs of zeros
        return found
    if type(found) is not _CachedCall or checks_values():
        return found
    function = codegen.ufunc_on_arrays(ufunc, [x.aval for x in arrays], found.avals, found.tree)
    return found if function is None else function


def _described(args: tuple[Any, ...], kwargs: dict[str, Any], key: list[Any], arrays: list[Array]) -> bool:
    """Add arguments to the key of a call, and their arrays; False where one cannot be told from others."""
    for x in args:
        kind = type(x)
        if kind is Array:
            key.append(x.aval)
            arrays.append(x)
        elif kind in _PLAIN:
            key.append(kind)
            key.append(x)
        elif not _describe(x, key, arrays):
            return False
    for name in kwargs:
        key.append(name)
        if not _describe(kwargs[name], key, arrays):
            return False
    return True


def _describe(x: Any, key: list[Any], arrays: list[Array]) -> bool:
    """Add an argument to the key of a call, and its arrays; False where it cannot be told from others."""
    kind = type(x)
    if kind is Array:
        key.append(x.aval)
        arrays.append(x)
    elif kind in _PLAIN:
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
    elif isinstance(x, type | Enum | np.dtype):
        key.append(x)
    else:
        return False
    return True


def _recorded(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _CachedCall | bool:
    """The call as a program; False where it needs values, has effects, warns or gives something else than arrays."""
    recorded = staged(fun, *tree.flatten((args, kwargs)), ARRAYS)
    if recorded is None:
        return False
    found = _CachedCall(*recorded)
    # Arguments that are results would be copied at each call: only small ones are worth it.
    return False if any(found.avals[i].nbytes > _LARGEST_COPIED for i in found.given) else found


@clears_cache
def _forget_programs() -> None:
    for programs in _known_tables():
        programs.clear()


def _forget_functions() -> None:
    """Leave functions that were generated with other rules to be generated again."""
    for programs in _known_tables():
        for key, found in list(programs.items()):
            if type(found) is _Function and (program := vars(found).get("program")) is not None:
                programs[key] = program


def _number_settings() -> int:
    """The number of the settings in force: programs are found again where these come back."""
    global _settings, _rules
    rules = evaluation.rules_version
    if rules != _rules:
        _forget_functions()
        _rules = rules
    values = tuple(config.values().values())
    try:
        _settings = _settings_met.setdefault(values, len(_settings_met))
    except TypeError:  # a plugin's, that has no hash
        _forget_programs()
        _settings = 0
    return _settings


def _follow_settings(*_: Any) -> None:
    """Leave it to the next call to look at all of them: many a change is taken back before there is one."""
    global _settings
    _settings = None


_settings: int | None = None
_rules = evaluation.rules_version  # that functions are written with
_settings_met: dict[tuple[Any, ...], int] = {}
config.changed.connect(_follow_settings)
rules_changed.connect(_follow_settings)
