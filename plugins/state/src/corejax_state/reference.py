"""References: cells that hold an array, which is read and replaced by indexing.

A reference is not a value of programs. It is a Python object that holds the current value: an array, or a tracer of the
function that made it. So `grad` and `vmap` see only arrays. A function that is staged (by `jit`, `scan`, `cond`, ...)
and uses a reference of an enclosing function is staged with the reference's value as an argument and its last value as
a result (`corejax.extend.transforms.Cell`). Programs stay pure, so that every transformation and every rule applies to
them, and the compiler updates the memory in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import RLock, get_ident
from typing import Any, NamedTuple

import corejax.numpy as jnp
from corejax.extend import Array, ShapedArray, Trace, Tracer, as_array, current_trace, get_aval
from corejax.extend.messages import api_boundary, capture_source, describe_source
from corejax.extend.transforms import BatchTrace, recording_trace
from corejax.extend.types import types_of
from corejax_lax_basic import lax
from corejax_state.indexing import At, add_to, read, written

# The kind of a reference to the counter of a random generator: its draws must differ between elements.
GENERATOR = "generator"


class AbstractRef(NamedTuple):
    """The type of a reference: `Ref{float32[3]}`.

    Attributes:
        inner_aval: the type of the array that it holds.
    """

    inner_aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the array."""
        return self.inner_aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes of the array."""
        return self.inner_aval.ndim

    @property
    def size(self) -> int:
        """The number of elements of the array."""
        return self.inner_aval.size

    @property
    def sharding(self) -> Any:
        """The sharding in the array's type."""
        return self.inner_aval.sharding

    def str_short(self, short_dtypes: bool = False) -> str:
        """Return the type as text, with dtypes such as `f32` if `short_dtypes`."""
        return f"Ref{{{self.inner_aval.str_short(short_dtypes=short_dtypes)}}}"

    def __repr__(self) -> str:
        return self.str_short()


class _Place:
    """The value of a reference in one function.

    Attributes:
        recorder: the trace that stages the function, or None outside of staged functions.
        level: the trace on top when the function began; values of traces above it cannot be stored.
        aval: the type of the value.
        value: the current value.
        is_owned: whether the value has no other owner, so that a program may reuse its memory.
        thread: the thread in which the function runs.
    """

    __slots__ = ("aval", "is_owned", "level", "recorder", "thread", "value")

    def __init__(self, value: Any, level: Trace) -> None:
        self.recorder = recording_trace()
        self.level = level
        self.aval = get_aval(value)
        self.value = value
        self.is_owned = False
        self.thread = get_ident()


class _Turn:
    """A lock that a compiled call holds while it may reuse the memory of a reference's value.

    Attributes:
        is_taken: whether the call has taken the value itself and not a copy, so that nothing else may use the value.
    """

    __slots__ = ("_depth", "_lock", "is_taken")

    def __init__(self) -> None:
        self._lock = RLock()
        self._depth = 0
        self.is_taken = False

    def acquire(self, blocking: bool = True) -> bool:
        """Wait until no other thread holds the lock, if `blocking`; return whether this thread holds it."""
        if not self._lock.acquire(blocking):
            return False
        self._depth += 1
        return True

    def release(self) -> None:
        """End a call. A callback makes calls inside the one that calls it back."""
        self._depth -= 1
        if self._depth == 0:
            self.is_taken = False
        self._lock.release()


class Ref:
    """A mutable reference to an array of a fixed shape and dtype; `new_ref` makes it.

        ref = corejax.new_ref(jnp.zeros(3))
        ref[0] = 1.0
        ref[1:] += 2.0
        x = ref[...]

    Indices are NumPy's. Values that are written broadcast to the shape of the indexed part and have its dtype. In
    pytrees, a reference belongs to the structure, and has no leaves: transformations pass it through.

    """

    __slots__ = ("__weakref__", "_aval", "_ended", "_kind", "_places", "_source", "turn")

    def __init__(self, value: Any, kind: str | None = None) -> None:
        value = as_array(value)
        if get_aval(value).weak_type:
            value = lax.convert_element_type(value, value.dtype)
        self._aval = get_aval(value)
        self._kind = kind
        self._source: Any = capture_source()  # a place in the user's code, or words
        self._ended: str | None = None
        self._places = [_Place(value, current_trace())]
        self.turn = _Turn()

    @classmethod
    def stand_in(cls, aval: ShapedArray) -> Ref:
        """Return a reference without a value, for a function that is traced on references of this type."""
        ref = object.__new__(cls)
        ref._aval, ref._kind, ref._ended, ref._source, ref._places = aval, None, None, "a call of jit", []
        ref.turn = _Turn()
        return ref

    @property
    def aval(self) -> ShapedArray:
        """The type of the array; in a function that is mapped over the reference, of one element."""
        place = self._last_place()
        return self._aval if place is None else place.aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the array."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes of the array."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """The number of elements of the array."""
        return self.aval.size

    @property
    def sharding(self) -> Any:
        """The sharding of the array; in a function that is traced, that of its type."""
        return self._value_or_type().sharding

    @property
    def committed(self) -> bool:
        """Whether the array is bound to its devices; False in a function that is traced."""
        return bool(getattr(self._value_or_type(), "committed", False))

    @property
    def at(self) -> At:
        """Views of parts: `ref.at[1:3]` is a reference to the rows 1 and 2, which reads and writes this one."""
        return At(self)

    def addupdate(self, value: Any, idx: Any = ...) -> None:
        """Add to the part at an index, as the function `addupdate` does."""
        add_to(self, idx, value)

    @property
    def _line(self) -> str:
        """The user's line that made the reference, for messages."""
        return self._source if isinstance(self._source, str) else describe_source(self._source)

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of a reference to a scalar")
        return self.aval.shape[0]

    @api_boundary
    def __getitem__(self, index: Any) -> Any:
        """Return the part of the array at an index."""
        return read(self.get(), index)

    @api_boundary
    def __setitem__(self, index: Any, value: Any) -> None:
        """Replace the part of the array at an index."""
        self._put(written(self.get(), index, self._stored(value), self))

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{self!r} is a reference: iterate over its value, ref[...]")

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} is a reference: test its value, ref[...]")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(f"{self!r} is a reference, not an array: pass its value, ref[...]")

    def __repr__(self) -> str:
        place = self._last_place()
        if (
            place is not None
            and self._ended is None
            and isinstance(place.value, Array)
            and not isinstance(place.value, Tracer)
        ):
            return f"Ref({repr(place.value).partition('(')[2]}"
        return f"Ref({self.aval.str_short(short_dtypes=False)})"

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle {self!r}: pickle its value, ref[...]")

    # -- the cell: what operators that stage functions use -----------------------------------------------------------

    def get(self) -> Any:
        """Return the current value.

        Raises:
            ValueError: the value belongs to a transformation around a function with custom rules that runs below it,
                or a compiled call that has not returned reuses its memory.
        """
        place = self._place()
        self._check_not_taken()
        place.is_owned = False
        value = place.value
        if isinstance(value, Tracer) and _is_above(value._trace, current_trace()):
            raise ValueError(
                f"{self!r}, made at {self._line}, holds a value that a transformation around this function traces: a "
                "function with custom rules has no rule for it. Pass the value as an argument, ref[...]"
            )
        return value

    def check_storable(self, value: Any) -> None:
        """Raise ValueError if a value is traced by a transformation inside the function that made the reference."""
        _check_level(self, self._place(), self._stored(value))

    def take(self) -> Any:
        """Return the value as an array with no other owner; the caller holds `turn`."""
        place = self._place()
        self._check_not_taken()
        if isinstance(place.value, Tracer):
            return place.value
        self.turn.is_taken = place.is_owned
        return place.value if place.is_owned else jnp.copy(place.value)

    def set(self, value: Any) -> None:
        """Replace the value by an array of its type with no other owner."""
        self._put(value).is_owned = True

    def enter(self, value: Any, trace: Trace) -> None:
        """Give the reference a value of its own in a function that `trace` interprets."""
        self._places.append(_Place(value, trace))

    def leave(self) -> None:
        """Forget the value of the last `enter` of this thread."""
        self._places.remove(self._last_place())  # type: ignore[arg-type]  # `enter` has added it

    def end(self, how: str) -> None:
        """Refuse all uses from now on; `how` says why.

        Raises:
            ValueError: the reference belongs to an enclosing function.
        """
        if len(self._places) > 1:
            raise ValueError(f"{self!r}, made at {self._line}, belongs to an enclosing function, which can freeze it")
        self._ended = how
        self._places[0].value = None

    def _place(self) -> _Place:
        """Return the place of the value in the function that runs.

        Raises:
            ValueError: the reference is frozen, or the function that made it has ended or does not run.
        """
        if self._ended is not None:
            raise ValueError(f"{self!r}, made at {self._line}, {self._ended}")
        place = self._last_place()
        while len(self._places) > 1 and place is not None and not place.level.alive:
            self._places.remove(place)  # an interrupt has prevented `leave`
            place = self._last_place()
        self._check_alive(place)
        if self._kind == GENERATOR and self._is_outside_of_batch():
            raise ValueError(
                f"the generator made at {self._line} is outside of a vmap, in which every element would draw the same "
                "numbers: pass rng.split(n) as an argument of the function that vmap maps"
            )
        recorder = recording_trace()
        if place is None or place.recorder is not recorder:
            if recorder is None:
                raise ValueError(f"{self!r}, made at {self._line}, has no known value here, outside of the program")
            recorder.open_cell(self)  # type: ignore[attr-defined]  # a trace that records
            place = self._last_place()
        assert place is not None
        return place

    def _check_not_taken(self) -> None:
        """Raise ValueError if a compiled call that has not returned reuses the memory of the value."""
        if self.turn.is_taken and recording_trace() is None:
            raise ValueError(
                f"a compiled call that has not returned reuses the memory of {self.aval.str_short()}, made at "
                f"{self._line}: a callback or another thread cannot use the reference now; pass the value as an operand"
            )

    def _is_outside_of_batch(self) -> bool:
        """Return whether a `vmap` that does not map over the reference runs inside the function that made it."""
        levels, trace = [place.level for place in self._places], current_trace()
        while trace is not None and trace not in levels and not isinstance(trace, BatchTrace):
            trace = trace.parent
        return isinstance(trace, BatchTrace) and trace not in levels

    def _last_place(self) -> _Place | None:
        """Return the place of the innermost function of this thread that uses the reference; None for a stand-in."""
        thread = get_ident()  # other threads may be tracing functions that use the reference
        for place in reversed(self._places):
            if place.thread == thread:
                return place
        return self._places[0] if self._places else None

    def check_alive(self) -> None:
        """Raise ValueError if the function that made the reference has ended."""
        self._check_alive(self._last_place())

    def _check_alive(self, place: _Place | None) -> None:
        if place is None:
            return
        if not place.level.alive or (place.recorder is not None and not place.recorder.alive):
            raise ValueError(
                f"{self!r}, made at {self._line}, has escaped from the function that made it, which has ended: return "
                "its value, ref[...] or freeze(ref), or make the reference outside and pass it in"
            )

    def _value_or_type(self) -> Any:
        """Return the current value, which stays owned; its type if it is not known."""
        value = self._place().value
        return get_aval(value) if isinstance(value, Tracer) else value

    def _stored(self, value: Any) -> Any:
        return lax.stop_gradient(value) if self._kind is not None else value

    def _put(self, value: Any) -> _Place:
        """Replace the value by an array of its type, and return its place."""
        place = self._place()
        _check_level(self, place, value)
        place.value = value
        place.is_owned = False
        return place


types_of[Ref] = lambda ref: AbstractRef(ref.aval)  # type: ignore[assignment, return-value]  # no type of arrays


def _is_above(trace: Trace, base: Trace) -> bool:
    """Whether `base` is one of the parents of a trace."""
    parent: Trace | None = trace.parent
    while parent is not None and parent is not base:
        parent = parent.parent
    return parent is not None


def _check_level(ref: Ref, place: _Place, value: Any) -> None:
    """Raise ValueError if a value belongs to a transformation inside the function that made the reference."""
    if not isinstance(value, Tracer):
        return
    trace = value._trace
    # A staged function treats values of the functions around it as constants, and staging traces have no parents.
    is_outer = place.recorder is not None and trace.alive and not _is_above(trace, place.level)
    if not (is_outer or trace is place.level or _is_above(place.level, trace)):
        debug = trace.debug
        inner = "by a transformation" if debug is None else f"while {debug.description()}"
        raise ValueError(
            f"cannot write to {ref!r}, made at {ref._line}: the value is traced {inner}, inside the function that "
            "made the reference, and would leave it. Return the value as an output, write stop_gradient(value) if its "
            "derivative does not matter, or make the reference inside the transformed function"
        )
