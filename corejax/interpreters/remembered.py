"""Functions made of many primitives, remembered as programs: eager calls of the same types run on NumPy end to end.

    remembered : (arrays -> arrays) -> (arrays -> arrays)

The first call with operands of some types runs the function. The second one records it, and later ones run the
program, which costs what its impl rules cost. Under a transformation, and while somebody watches, the function itself
runs, as if it were not remembered.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from corejax import observe, tree
from corejax.array import Array, as_array, host_value, is_spread
from corejax.caches import clears_cache
from corejax.config import config
from corejax.interpreters import evaluation, host_programs, large_operations
from corejax.interpreters.host_functions import ufunc_on_arrays
from corejax.interpreters.whole_programs import (
    ARRAYS,
    ARRAYS_AND_NUMBERS,
    LIMIT,
    NUMBERS,
    Common,
    Whole,
    calls_with_other_numbers,
    large_call,
    may_be_operands,
    staged,
    unmet,
)
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr
from corejax.trace import state

F = TypeVar("F", bound=Callable[..., Any])

_AGREEMENTS = 3  # results of a program that takes numbers, before it is relied on
_LARGEST_KNOWN = 1 << 20  # bytes of values that a program keeps; above it computes them each time
_LARGEST_COPIED = 1 << 14  # bytes of a result that is an argument
_PLAIN = frozenset({int, bool, str, type(None), type(Ellipsis), type})
_bottom = evaluation._bottom
_quiet = evaluation._quiet
_new_context = evaluation._new_context
_Function = type(lambda: None)
_run_program = host_programs._run_program
_tables: dict[int, weakref.ref[_Programs]] = {}  # of all functions that there are, by id


class _Programs(dict[Any, Any]):
    """What is remembered of one function: types and static arguments -> see `call_anew`."""

    __slots__ = ("__weakref__",)


def _known_tables() -> list[_Programs]:
    return [programs for table in list(_tables.values()) if (programs := table()) is not None]


class _Program:
    """A recorded call, run by NumPy.

    Attributes:
        jaxpr: the program without what depends on no argument.
        known: NumPy arrays, its constants and then its first arguments.
        given: which results no equation makes.
        avals: types of the results.
        tree: how they are put together; None for one array.
        runs: how often it was run, until it is written out.
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
        run = evaluation._quiet.run or evaluation._new_context()
        outs = run(host_programs._run_program, self.jaxpr, values)
        for i in self.given:  # each array has memory of its own: it may be donated
            outs[i] = outs[i].copy()
        arrays = [Array(o, aval) for o, aval in zip(outs, self.avals, strict=True)]
        return arrays[0] if self.tree is None else tree.unflatten(self.tree, arrays)

    def written(self) -> Callable[..., Any] | None:
        """A function of the operands that does the same, once the program has been run a few times; None before."""
        if self.runs < host_programs.RUNS - 1:
            return None
        self.runs = 0
        if host_programs._run_program is not _run_program:
            return None  # somebody looks at values
        function = host_programs.written_out_on_arrays(self.jaxpr, self.known, self.avals, self.tree)
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
    from corejax.interpreters.partial_eval_jaxpr import partial_eval_jaxpr
    from corejax.interpreters.rematerialization import keep_all

    # What is known is computed once, and what depends on it often.
    known, unknown, _, count = partial_eval_jaxpr(closed, [True] * len(closed.in_avals), True, keep_all)
    if sum(aval.nbytes for aval in known.out_avals) > _LARGEST_KNOWN:
        return closed.jaxpr, _on_host(closed.consts)
    values = evaluation.run_quietly(host_programs.eval_jaxpr_on_host, (known, ()))
    return unknown.jaxpr, _on_host([*unknown.consts, *values[len(values) - count :]])


def _on_host(values: list[Any]) -> list[Any]:
    return [as_array(x)._fetch() for x in values]


@overload
def remembered(fun: F, *, ufunc: np.ufunc | None = None, ufunc_of: str = "", numbers: bool = False) -> F: ...


@overload
def remembered(*, ufunc: np.ufunc | None = None, ufunc_of: str = "", numbers: bool = False) -> Callable[[F], F]: ...


def remembered(fun: Any = None, *, ufunc: np.ufunc | None = None, ufunc_of: str = "", numbers: bool = False) -> Any:
    """A function whose eager calls are recorded when they come again, and then run as one program.

    For pure functions of arrays and static arguments (numbers, strings, None, dtypes, enumerations), lists and tuples
    of these, which give an array or a pytree of arrays. A call with other arguments, and one that needs values or warns
    (`warn_user`), runs the function. One that looks at values only where they are known, or at whether two arguments
    are one object, has to be left alone: its program would give something else.

    Args:
        fun: the function; what it returns has to be the same for the same values. Without it, a decorator.
        ufunc: NumPy's ufunc that gives the same bits wherever it gives the same dtypes, special values included: it
            runs in place of the program, whatever rules its primitives have.
        ufunc_of: NumPy's codes of the dtypes of the first operand for which that holds (`"fd"`: float32 and float64);
            by default all.
        numbers: whether floats and complex numbers of Python's are operands as arrays are: nothing but promotion
            depends on them. Calls that differ in these have one program then; otherwise each number has its own.

    Returns:
        The function under its name and with its documentation; `__wrapped__` is `fun`.

    Raises:
        TypeError: `fun` is no function, or `ufunc` no ufunc of NumPy's.
    """
    if ufunc is not None and not isinstance(ufunc, np.ufunc):
        raise TypeError(f"remembered: ufunc is one of NumPy's, such as np.copysign, got {ufunc!r}")
    if fun is None:
        return functools.partial(remembered, ufunc=ufunc, ufunc_of=ufunc_of, numbers=numbers)
    if not callable(fun):
        raise TypeError(f"remembered takes a function, got {fun!r} of type {type(fun).__name__}")
    given = _Given(ufunc, ufunc_of, numbers)
    programs = _Programs()
    where = id(programs)
    _tables[where] = weakref.ref(programs, lambda _: _tables.pop(where, None))

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if state.trace is not _bottom or observe.watched:
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
        if count == 1:  # written out for one and two arrays, which most calls are
            exact = (settings, args[0].aval)
        elif count:
            exact = (settings, args[0].aval, args[1].aval)
        else:
            key: list[Any] = [settings]
            arrays = []
            if not _described(args, kwargs, key, arrays):
                return fun(*args, **kwargs)
            exact = tuple(key)
        found = programs.get(exact, unmet)
        if type(found) is _Function:
            try:
                return (_quiet.run or _new_context())(found, *arrays)
            except Exception:  # the function's own error names the lines of this call
                return fun(*args, **kwargs)
        if found is False:
            return fun(*args, **kwargs)
        return call_anew(fun, args, kwargs, arrays, programs, exact, found, given)

    return call


class _Given(NamedTuple):
    """What was said of a function; see `remembered`."""

    ufunc: np.ufunc | None
    ufunc_of: str
    numbers: bool


def call_anew(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    arrays: Sequence[Array],
    programs: dict[Any, Any],
    exact: tuple[Any, ...],
    found: Any,
    given: _Given,
) -> Any:
    """A call that is not written out: from the first one on."""
    large = (found is unmet or found is None) and any(x.aval.size >= large_operations.SIZE for x in arrays)
    if large:
        whole, taken = large_call(fun, args, kwargs, programs, exact, found is None, given.numbers)
        if whole is not unmet:
            found, arrays = whole, taken
    if type(found) is _Program or type(found) is Whole:
        try:
            out = found.run(arrays)
        except Exception:  # the function's own error names the lines of this call
            return fun(*args, **kwargs)
        if type(found) is _Program and (function := found.written()) is not None:
            programs[exact] = function
        return out
    if found is None:
        found = _recorded(fun, args, kwargs)
        if not large and _is_large(found):
            whole, taken = large_call(fun, args, kwargs, programs, exact, True, given.numbers)
            if whole is not unmet:
                return call_anew(fun, args, kwargs, taken, programs, exact, whole, given)
        if given.ufunc is not None and not kwargs and len(arrays) == len(args):
            found = _as_ufunc(given.ufunc, given.ufunc_of, arrays, found)
        programs[exact] = found
        return fun(*args, **kwargs)
    if found is unmet:
        common: Common | None = None
        operands: Sequence[Array] = ()
        if given.numbers and not large:
            common, operands = _with_other_numbers(args, kwargs, programs, exact[0])
        if common is not None and common.agreed >= _AGREEMENTS:
            try:
                return _run_common(common, operands)
            except Exception:  # the function's own error names the lines of this call
                return fun(*args, **kwargs)
        out = fun(*args, **kwargs)  # an error is no reason to remember
        if common is not None:
            _compare(common, fun, args, kwargs, operands, out)
        if len(programs) >= LIMIT:
            programs.clear()
        programs[exact] = None
        if not large and type(out) is Array and out.aval.size >= large_operations.SIZE:  # of small operands
            whole, taken = large_call(fun, args, kwargs, programs, exact, False, given.numbers)
            if whole is not unmet:
                return call_anew(fun, args, kwargs, taken, programs, exact, whole, given)
        return out
    return fun(*args, **kwargs)


def _with_other_numbers(
    args: tuple[Any, ...], kwargs: dict[str, Any], programs: dict[Any, Any], settings: int
) -> tuple[Common | None, list[Array]]:
    """What is known of calls that differ from one in numbers of Python's only, and all operands with the numbers."""
    if not any(type(x) in NUMBERS for x in (*args, *kwargs.values())):
        return None, []
    leaves, structure = tree.flatten((args, kwargs))
    common = calls_with_other_numbers(programs, settings, leaves, structure) if may_be_operands(leaves) else None
    if common is None or common.program is False:
        return None, []
    try:
        return common, [as_array(x) for x in leaves if type(x) in ARRAYS_AND_NUMBERS]
    except OverflowError:  # the function knows what to do, or to say
        return None, []


def _run_common(common: Common, operands: Sequence[Array]) -> Any:
    if type(common.program) is _Function:
        return (_quiet.run or _new_context())(common.program, *operands)
    out = common.program.run(operands)
    common.program = common.program.written() or common.program
    return out


def _compare(
    common: Common,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    operands: Sequence[Array],
    out: Any,
) -> None:
    """Record a program that takes the numbers, when they have changed a few times, and see whether it gives the same.

    It does not where a function computes with numbers as Python does, or chooses by them what to compute.
    """
    common.met += 1
    if common.met <= _AGREEMENTS:
        return
    if common.program is None:
        leaves, structure = tree.flatten((args, kwargs))
        recorded = staged(fun, leaves, structure, ARRAYS_AND_NUMBERS)
        common.program = recorded is not None and _Program(*recorded)
    try:
        same = common.program is not False and _same_bits(common.program.run(operands), out)
    except Exception:
        same = False
    if not same or _is_large(common.program):
        common.program = False
    else:
        common.agreed += 1


def _same_bits(x: Any, y: Any) -> bool:
    (xs, x_tree), (ys, y_tree) = tree.flatten(x), tree.flatten(y)
    return bool(x_tree == y_tree) and all(
        a.aval is b.aval and host_value(a).tobytes() == host_value(b).tobytes() for a, b in zip(xs, ys, strict=True)
    )


def _is_large(found: _Program | bool) -> bool:
    return type(found) is _Program and any(aval.size >= large_operations.SIZE for aval in found.avals)


def _as_ufunc(ufunc: np.ufunc, codes: str, arrays: Sequence[Array], found: Any) -> Any:
    """A recorded call as a ufunc, if that gives results of the same types, and nobody looks for NaNs."""
    if codes and not (arrays and arrays[0].aval.dtype.char in codes):
        return found
    if any(x.aval.dtype.kind == "V" and x.aval.dtype.itemsize == 1 for x in arrays):  # some have no signs of zeros
        return found
    if type(found) is not _Program or host_programs._run_program is not _run_program:
        return found
    function = ufunc_on_arrays(ufunc, [x.aval for x in arrays], found.avals, found.tree)
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


def _recorded(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Program | bool:
    """The call as a program; False where it needs values, has effects, warns or gives something else than arrays."""
    recorded = staged(fun, *tree.flatten((args, kwargs)), ARRAYS)
    if recorded is None:
        return False
    found = _Program(*recorded)
    # What is given as it is would be copied: nobody minds where that is small.
    large = any(found.avals[i].nbytes > _LARGEST_COPIED for i in found.given)
    return False if large else found


@clears_cache
def _forget_programs() -> None:
    for programs in _known_tables():
        programs.clear()


def _forget_functions() -> None:
    """Leave programs that were written out with other rules to be written out again."""
    for programs in _known_tables():
        for key, found in list(programs.items()):
            if type(found) is _Function and (program := vars(found).get("program")) is not None:
                programs[key] = program
            elif type(found) is Common and type(found.program) is _Function:
                found.program = vars(found.program)["program"]


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


def _follow_settings() -> None:
    """Leave it to the next call to look at all of them: many a change is taken back before there is one."""
    global _settings
    _settings = None


_settings: int | None = None
_rules = evaluation.rules_version  # that functions are written with
_settings_met: dict[tuple[Any, ...], int] = {}
config.changed.connect(_follow_settings)
evaluation.rules_changed.connect(_follow_settings)
