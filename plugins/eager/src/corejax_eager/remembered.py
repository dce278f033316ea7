"""Functions made of many primitives, recorded as programs: eager calls of the same types run on NumPy end to end.

    remembered : (arrays -> arrays) -> (arrays -> arrays)

The first call with operands of some types runs the function. The second one records it as a program and generates a
function from that, which later calls run; programs that are long or large run as they are. Under a transformation, and
while the thread is watched, the function itself runs, as if it were not remembered.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np

from corejax.extend import (
    Array,
    ClosedJaxpr,
    Jaxpr,
    Primitive,
    ShapedArray,
    as_array,
    config,
    eval_jaxpr_on_host,
    impl_rules,
    tree,
)
from corejax.extend.devices import checks_values, is_spread
from corejax.extend.messages import clears_cache, observe
from corejax.extend.programs import keep_all
from corejax.extend.speed import bottom, quiet, run_quietly, state
from corejax_eager import codegen, large
from corejax_eager.fused import (
    ARRAYS,
    LIMIT,
    MISSING,
    fused_call,
    staged,
)

_LARGEST_KNOWN = 1 << 20  # bytes of values that a program keeps; above it computes them each time
_LARGEST_COPIED = 1 << 14  # bytes of a result that is an argument
_PLAIN = frozenset({int, bool, str, type(None), type(Ellipsis), type})
_Function = type(lambda: None)


class _CachedCall:
    """A recorded call, run by NumPy.

    Attributes:
        jaxpr: the program without what depends on no argument.
        known: NumPy arrays, its constants and then its first arguments.
        given: which results no equation makes.
        avals: types of the results.
        tree: how they are put together; None for one array.
    """

    __slots__ = ("avals", "given", "jaxpr", "known", "tree")

    def __init__(self, closed: ClosedJaxpr, structure: Any) -> None:
        self.avals = closed.out_avals
        self.tree = structure
        self.jaxpr, self.known = _with_known_values(closed)
        made = {v for eqn in self.jaxpr.eqns for v in eqn.outvars}
        self.given = [i for i, v in enumerate(self.jaxpr.outvars) if v not in made]

    def run(self, arrays: Sequence[Array]) -> Any:
        """The results for operands of the recorded types.

        Raises:
            ValueError: an operand's parts are on several devices, where the results are to be.
        """
        values = _host_values(self.known.copy(), arrays)
        run = quiet.run or quiet.new()
        outs = run(bottom.run_program, self.jaxpr, values)
        for i in self.given:  # each array has memory of its own: it may be donated
            outs[i] = outs[i].copy()
        arrays = [Array(o, aval) for o, aval in zip(outs, self.avals, strict=True)]
        return arrays[0] if self.tree is None else tree.unflatten(self.tree, arrays)


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
    values = run_quietly(eval_jaxpr_on_host, known, ())
    return unknown.jaxpr, _on_host([*unknown.consts, *values[len(values) - count :]])


def _on_host(values: list[Any]) -> list[Any]:
    return [as_array(x)._fetch() for x in values]


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
        return remembered.slow_call(args, kwargs, arrays, exact, found)

    call.__corejax_remembered__ = remembered  # type: ignore[attr-defined]
    return call


class _Remembered:
    """A remembered function.

    Attributes:
        fun, ufunc, ufunc_of, numbers: the arguments of `remembered`.
        programs: for the types and static arguments of a call (its key), a generated function, a `_CachedCall`, a
            `CompiledCall`, False if the function itself has to run, or None if it has run once.
    """

    def __init__(self, fun: Callable[..., Any], ufunc: np.ufunc | None, ufunc_of: str, numbers: bool) -> None:
        self.fun = fun
        self.ufunc = ufunc
        self.ufunc_of = ufunc_of
        self.numbers = numbers
        self.programs: dict[Any, Any] = {}
        _all_remembered.add(self)

    def slow_call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: Sequence[Array], key: tuple[Any, ...], found: Any
    ) -> Any:
        """Handle a call for which no function has been generated; `found` is what `programs` has of it."""
        if found is MISSING or found is None:
            return self.early_call(args, kwargs, arrays, key, found is None)
        if found is not False:
            try:
                return found.run(arrays)
            except Exception:  # the function's own error names the lines of this call
                pass
        return self.fun(*args, **kwargs)

    def early_call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: Sequence[Array], key: tuple[Any, ...], again: bool
    ) -> Any:
        """Run the function, and record it if the call has come `again`; or run it as a compiled program."""
        wide = _any_large([x.aval for x in arrays])
        if wide and (out := self.fused_call(args, kwargs, key, again)) is not MISSING:
            return out
        if again:
            recorded = self.recorded(args, kwargs)
            avals = () if recorded is None else recorded.avals
        else:
            out = self.fun(*args, **kwargs)  # an error is no reason to remember
            avals = (out.aval,) if type(out) is Array else ()
            if len(self.programs) >= LIMIT:
                self.programs.clear()
            self.programs[key] = None
        if not wide and _any_large(avals) and (fused := self.fused_call(args, kwargs, key, again)) is not MISSING:
            return fused
        if not again:
            return out
        of_arrays = len(arrays) == len(args) and not kwargs
        self.programs[key] = recorded is not None and self.shortest(recorded, arrays if of_arrays else None)
        return self.fun(*args, **kwargs)

    def fused_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], key: tuple[Any, ...], again: bool) -> Any:
        """Run a call as a compiled program; `MISSING` if it is not worth compiling."""
        found, arrays = fused_call(self.fun, args, kwargs, self.programs, key, again, self.numbers)
        return MISSING if found is MISSING else self.slow_call(args, kwargs, arrays, key, found)

    def recorded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _CachedCall | None:
        """Record a call; None if it needs values, has effects, warns or returns anything but arrays."""
        recorded = staged(self.fun, *tree.flatten((args, kwargs)), ARRAYS)
        if recorded is None:
            return None
        found = _CachedCall(*recorded)
        # Arguments that are results would be copied at each call: only small ones are worth it.
        return None if any(found.avals[i].nbytes > _LARGEST_COPIED for i in found.given) else found

    def shortest(self, call: _CachedCall, arrays: Sequence[Array] | None) -> Any:
        """Return a generated function that does what a recorded call does, or the call itself.

        Args:
            call: the recorded call.
            arrays: its operands, if these are all arguments.
        """
        if checks_values():
            return call
        ufunc = self.ufunc if arrays is not None and self._runs_ufunc(arrays) else None
        return codegen.generate_on_arrays(call.jaxpr, call.known, call.avals, call.tree, ufunc) or call

    def _runs_ufunc(self, arrays: Sequence[Array]) -> bool:
        if self.ufunc_of and not (arrays and arrays[0].aval.dtype.char in self.ufunc_of):
            return False
        # Some narrow floats have no signs of zeros.
        return not any(x.aval.dtype.kind == "V" and x.aval.dtype.itemsize == 1 for x in arrays)


_all_remembered: weakref.WeakSet[_Remembered] = weakref.WeakSet()


def _any_large(avals: Sequence[ShapedArray]) -> bool:
    return any(aval.size >= large.SIZE for aval in avals)


def _described(args: tuple[Any, ...], kwargs: dict[str, Any], key: list[Any], arrays: list[Array]) -> bool:
    """Add arguments to the key of a call, and their arrays; False if one cannot be told from others."""
    for x in args:
        if not _describe(x, key, arrays):
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


@clears_cache
def _forget_programs() -> None:
    for remembered in list(_all_remembered):
        remembered.programs.clear()


def _forget_host_programs() -> None:
    """Forget what NumPy runs by impl rules; compiled programs do not depend on these."""
    for remembered in list(_all_remembered):
        for key, found in list(remembered.programs.items()):
            if type(found) is _Function or type(found) is _CachedCall:
                del remembered.programs[key]


def _number_settings() -> int:
    """The number of the settings in force: programs are found again where these come back."""
    global _settings, _rules_changed
    if _rules_changed:
        _rules_changed = False
        _forget_host_programs()
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


def _follow_rules(primitive: Primitive) -> None:
    global _rules_changed
    _rules_changed = True
    _follow_settings()


_settings: int | None = None
_rules_changed = False  # whether an impl rule is another one than functions were written with
_settings_met: dict[tuple[Any, ...], int] = {}
config.changed.connect(_follow_settings)
impl_rules.changed.connect(_follow_rules)
