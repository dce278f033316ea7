"""`Array`, the immutable value that users hold: one type, whatever produced it, on the host or on a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from corejax import dtypes, observe, tree
from corejax.core.array_methods import ArrayMethods, missing
from corejax.core.array_text import NumbersAndText
from corejax.core.avals import (
    ShapedArray,
    array_method,
    from_numbers,
    get_aval,
    ndarray_aval,
    numbers_of,
    physical_aval,
    python_scalar_aval,
)
from corejax.core.backend_calls import fetched_by, place_of, put_by
from corejax.core.backends import Backend, backends
from corejax.core.trace import Tracer, bottom_trace, current_trace, escaped, in_context
from corejax.errors import PluginMissingError
from corejax.messages import source_info
from corejax.messages.homes import install_advice
from corejax.messages.marks import not_of_rule
from corejax.settings.config import config


class GivenUp(NamedTuple):
    """Why the values of arrays were given up, and by which line of the user's."""

    reason: str
    source: Any


class Deleted(NamedTuple):
    """In place of the buffer of an array whose value was given up; with its type, which the array may not have read."""

    why: GivenUp
    aval: ShapedArray


class ElementBuffer:
    """A device buffer of the numbers that an array of an extended dtype is held as.

    Dispatchers see a node of one buffer; the dtype tells it from an array of numbers.
    """

    __slots__ = ("buffer", "dtype")

    def __init__(self, buffer: Any, dtype: np.dtype[Any]) -> None:
        self.buffer = buffer
        self.dtype = dtype

    @property
    def aval(self) -> ShapedArray:
        """Type of the array."""
        _, inner = dtypes.element_of(self.dtype)
        shape = self.buffer.aval.shape
        return ShapedArray(shape[: len(shape) - len(inner)], self.dtype)


def _backend(buffer: Any = None) -> Backend:
    """Return the backend of a buffer; without one, the backend that makes buffers of arrays on the host."""
    if type(buffer) is Deleted:
        line = source_info.describe_source(buffer.why.source)
        raise not_of_rule(RuntimeError(f"Array has been deleted at {line}: {buffer.why.reason}"))
    found = backends.of_dispatcher if buffer is None else backends.of_buffer(buffer)
    if found is None:
        raise PluginMissingError(f"no backend is loaded, so there are no device buffers{install_advice('backends')}")
    return found


_ndarray = np.ndarray


class _ArrayType(type):
    """Makes tracers instances of `Array`: code that asks for an array means them too.

    Python asks here only about what is not an `Array` itself.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tracer) or super().__instancecheck__(instance)


class Array(NumbersAndText, ArrayMethods, metaclass=_ArrayType):
    """An immutable n-dimensional array; tracers are instances too (`type(x) is Array` asks for a value).

    Holds a NumPy array, or a device buffer whose host view is made on first use and kept. Operators and most
    methods come from plugins (`corejax.core.array_methods`).

    Args:
        buffer: a NumPy array or scalar (copied unless an `aval` is given; with one it is the array's own from then
            on, and read-only), or a device buffer.
        aval: its type; by default the buffer's own, strongly typed.
    """

    # `_buf` is unset in an array that is on the host only: reading it makes the buffer (see __getattr__), so that a
    # backend's dispatcher can take arrays apart without asking where they are.
    __slots__ = ("__weakref__", "_buf", "_host", "aval")

    aval: ShapedArray
    _buf: Any
    _host: np.ndarray[Any, Any] | None

    def __init__(self, _buf: Any, aval: ShapedArray | None = None) -> None:
        if type(_buf) is _ndarray:
            if aval is None:
                aval = ndarray_aval(_buf)
                _buf = np.array(_buf)
            _buf.setflags(False)  # by keyword it takes twice as long
            self._host = _buf
            self.aval = aval
        else:  # what a compiled function returns comes this way, so it does as little as it can
            self._buf = _buf
            if aval is not None:
                self.aval = aval
                if aval.dtype.names is not None and type(_buf) is not ElementBuffer:
                    self._buf = ElementBuffer(_buf, aval.dtype)

    def _attribute(self, name: str) -> Any:
        if name == "_buf":
            self._buf = buffer = _put(_backend(), self)
            return buffer
        if name == "_host":
            buffer = self._buf
            if not isinstance(buffer, (np.generic, np.ndarray)):
                self._host = None
                return None
            del self._buf  # a NumPy scalar, or an instance of a subclass
            host = np.array(buffer)
            host.setflags(write=False)
            self._host = host
            return host
        if name == "aval":  # not needed while the array only passes from one compiled function to the next
            known = self._host
            buffer = _held(self)  # a host view that was fetched meanwhile says nothing of the weak type
            self.aval = aval = buffer.aval if known is None or buffer is not None else ndarray_aval(known)
            return aval
        if name.startswith("__"):  # NumPy asks for two such before `__array__`
            raise AttributeError(f"'Array' object has no attribute {name!r}")
        return missing(self, name)

    if not TYPE_CHECKING:  # so that type checkers report misspelt names
        __getattr__ = _attribute

    def _fetch(self) -> np.ndarray[Any, Any]:
        """The host view of the value."""
        host = self._host
        if host is None:
            buffer = self._buf
            if type(buffer) is ElementBuffer:
                backend, numbers = _backend(buffer.buffer), buffer.buffer
                host = from_numbers(fetched_by(backend, numbers, None), buffer.dtype)
                host.setflags(write=False)
            else:
                backend, numbers = _backend(buffer), buffer
                host = fetched_by(backend, buffer, None if backend is backends.of_dispatcher else self.aval)
            if not backend.is_spread(numbers):  # operations are to go on asking where the parts are
                self._host = host
        return host

    def _with_aval(self, aval: ShapedArray) -> Array:
        """The same value with another weak type."""
        return Array(self._buf if self._host is None else self._host, aval)

    def _is_here(self) -> bool:
        """Whether this process can read all of the value: others may have parts that it does not have."""
        buffer = device_buffer(self)
        if buffer is None or type(buffer) is Deleted:
            return True
        place: Any = place_of(_backend(buffer), buffer)
        return bool(getattr(place, "is_fully_addressable", True) or place.is_fully_replicated)

    # -- places ------------------------------------------------------------------------------------------------

    def devices(self) -> set[Any]:
        """Devices that hold the array; empty for one on the host."""
        buffer = device_buffer(self)
        if buffer is None:
            return set()
        place: Any = place_of(_backend(buffer), buffer)
        return set(getattr(place, "device_set", {place}))

    @property
    def device(self) -> Any:
        """The device that holds the array, or the sharding of its parts.

        Of one on the host the device that it would be put on.
        """
        buffer = device_buffer(self)
        if buffer is not None:
            return place_of(_backend(buffer), buffer)
        backend, platform = backends.find()
        return backend.default_device(platform)

    def to_device(self, device: Any, /, *, stream: None = None) -> Array:
        """The array on a device: itself where it is there.

        Raises:
            ValueError: a `stream`, which nothing here has.
        """
        if stream is not None:
            raise ValueError(f"to_device: there are no streams to choose from, stream is None, got {stream!r}")
        return placed(self, backends.of_device(device), device)

    def copy_to_host_async(self) -> None:
        """Begin the transfer that reading the value will wait for, where it has to be transferred."""
        buffer = device_buffer(self)
        if buffer is not None and self._host is None:
            _backend(buffer).start_fetch(buffer)

    def on_device_size_in_bytes(self) -> int:
        """Bytes of all elements."""
        return self.aval.size * self.aval.dtype.itemsize

    def is_deleted(self) -> bool:
        """Whether `delete` was called, or the array was donated to a compiled program."""
        buffer = device_buffer(self)
        return type(buffer) is Deleted or (buffer is not None and _backend(buffer).is_deleted(buffer))

    def is_ready(self) -> bool:
        """Whether the value is computed: reading it waits for nothing.

        Raises:
            RuntimeError: the array was deleted.
        """
        buffer = device_buffer(self)
        return buffer is None or _backend(buffer).is_ready(buffer)

    def delete(self) -> None:
        """Give up the value, and its memory once no view of it is left; using the array is an error from then on."""
        if not self.is_deleted():
            self._buf = Deleted(GivenUp("x.delete() gave up its value", source_info.capture_source()), self.aval)
            self._host = None

    def block_until_ready(self) -> Array:
        """Wait until the value is computed; returns the array."""
        try:
            buffer = _read_buffer(self)
        except AttributeError:  # it is on the host only
            return self
        backend = backends.of_buffer(buffer)
        if backend is None:
            buffer = device_buffer(self)
            backend = None if buffer is None else _backend(buffer)
        if backend is not None:
            backend.block_until_ready([buffer])
        return self

    # -- conversion --------------------------------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        host = self._fetch()
        self._require_numbers("numpy.asarray")
        if dtype is not None and np.dtype(dtype) != host.dtype:
            if copy is False:
                raise ValueError(f"cannot convert {self.aval.str_short()} to {np.dtype(dtype)} without a copy")
            return host.astype(dtype)
        if copy:
            return host.copy()
        return _sealed(host)

    def __buffer__(self, flags: int) -> memoryview:
        """The value in place, read-only (Python 3.12 on asks for it: `memoryview(x)`).

        Raises:
            BufferError: Python's buffers lack the dtype: bfloat16, say.
        """
        try:
            host: Any = self._fetch()
            return memoryview(host).toreadonly()
        except ValueError:
            raise BufferError(
                f"Python's buffers have no {self.aval.dtype.name}; x.view('uint16') has its bits"
            ) from None

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The value for another library: a read-only view for those that know read-only (DLPack 1.0), or a copy.

        Raises:
            BufferError: `copy=False` where a copy is needed, another device than the host, or a dtype that DLPack
                lacks.
        """
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"__dlpack__: an array is exported from the host, dl_device is (1, 0), got {dl_device}")
        knows_read_only = max_version is not None and max_version[0] >= 1
        if copy is False and not knows_read_only:
            raise BufferError(
                "__dlpack__: arrays are immutable, and a consumer of DLPack before 1.0 (max_version=None) could write "
                "to the memory; copy=False needs max_version=(1, 0)"
            )
        if self.aval.dtype.kind == "V":
            raise BufferError(
                f"__dlpack__: NumPy exports no {self.aval.dtype.name}; export the bits, x.view('uint16') say"
            )
        host = np.array(self._fetch()) if copy or not knows_read_only else _sealed(self._fetch())
        return host.__dlpack__(stream=stream, max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU: the host view is what is exported

    def __iter__(self) -> Iterator[Any]:
        if (
            not self.shape
            or observe.checking
            or in_context()
            or current_trace() is not bottom_trace()
            or is_spread(self)
        ):
            return super().__iter__()  # parts of a program, if one is recorded, or on several devices
        row = ShapedArray(self.shape[1:], self.dtype, self.weak_type)
        return (Array(np.asarray(x, self.dtype), row) for x in self._fetch())

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self._fetch(), self.aval.refined(None)))

    def __copy__(self) -> Array:
        return self

    def __deepcopy__(self, memo: Any) -> Array:
        """The same value in an array of its own, which stays when this one is donated."""
        copy: Any = getattr(self, "copy", None)  # a plugin's, which leaves parts on their devices
        return Array(self._fetch(), self.aval) if copy is None else copy()


def backend_of_parts(array: Array) -> Backend | None:
    """The backend of an array whose value is in parts on several devices, and nowhere else; None of others."""
    buffer = device_buffer(array) if array._host is None else None
    backend = backends.of_buffer(buffer)
    return backend if backend is not None and backend.is_spread(buffer) else None


def is_spread(array: Array) -> bool:
    """Whether parts of the array's value are on several devices, and nowhere else."""
    return backend_of_parts(array) is not None


def bound_device(array: Array, backend: Backend) -> Any:
    """The device of a backend that the array is bound to (`device_put` to it did that); None where it may be copied."""
    buffer = device_buffer(array)
    return backend.bound_to(buffer) if type(buffer) is backend.buffer_type else None


def buffer_of(array: Array, backend: Backend) -> Any:
    """The array's buffer of a backend: its own, or one made of its value, which it keeps for the dispatcher's."""
    try:
        buffer = _read_buffer(array)
    except AttributeError:
        buffer = None
    buffer = numbers_held(buffer)
    if type(buffer) is backend.buffer_type:
        return buffer
    if buffer is None and backend is backends.of_dispatcher:
        return numbers_held(array._buf)
    return numbers_held(_put(backend, array))


def _put(backend: Backend, array: Array, device: Any = None) -> Any:
    """A buffer of a backend with the array's value, as arrays hold them."""
    host, aval = array._fetch(), array.aval
    more = () if device is None else (device,)
    if aval.dtype.names is not None:
        return ElementBuffer(put_by(backend, numbers_of(host), physical_aval(aval), *more), aval.dtype)
    return put_by(backend, host, aval, *more)


def numbers_held(buffer: Any) -> Any:
    """The device buffer itself, of what an array holds."""
    return buffer.buffer if type(buffer) is ElementBuffer else buffer


def placed(array: Array, backend: Backend, device: Any = None) -> Array:
    """The array with a buffer of a backend's, on a device (the default one unless given); itself where it has one."""
    own = device_buffer(array)
    if device is None:
        buffer = buffer_of(array, backend)
        return array if device_buffer(array) is buffer else Array(buffer, array.aval)
    of_type = getattr(device, "of_type", None)  # of a sharding that types of arrays name
    aval = array.aval.refined(None if of_type is None else of_type(array.aval.ndim))
    if type(own) is not backend.buffer_type or array._host is not None:
        return Array(_put(backend, array, device), aval)
    binds = type(backend).bound_to is not Backend.bound_to
    there = backend.bound_to(own) if binds else backend.device_of(own)
    return array if there == device else Array(put_by(backend, own, physical_aval(array.aval), device), aval)


_read_buffer = vars(Array)["_buf"].__get__


def device_buffer(array: Array) -> Any:
    """The array's buffer if it has one."""
    return numbers_held(_held(array))


def _held(array: Array) -> Any:
    """What the array holds of a device: a buffer, one of an extended dtype's numbers, or None."""
    try:
        buffer = _read_buffer(array)
    except AttributeError:
        return None
    return None if isinstance(buffer, (np.generic, np.ndarray)) else buffer


def held_buffers(arrays: list[Array]) -> list[Any]:
    """What arrays hold of a device, each as `_held` gives it; of many at once that all hold something it is quick."""
    try:
        held = [*map(_read_buffer, arrays)]
    except AttributeError:
        return [_held(x) for x in arrays]
    on_host = any(issubclass(kind, (np.generic, np.ndarray)) for kind in set(map(type, held)))
    return [_held(x) for x in arrays] if on_host else held


def _sealed(host: Any) -> np.ndarray[Any, Any]:
    """Return a view that cannot be made writable again, for its base is a read-only buffer."""
    try:
        return np.asarray(memoryview(host).toreadonly())
    except ValueError:  # Python's buffers lack the type: bfloat16, say
        bits = host.view(f"u{host.itemsize}")
        return np.asarray(memoryview(bits).toreadonly()).view(host.dtype)


def _rebuild(value: np.ndarray[Any, Any], aval: ShapedArray) -> Array:
    return Array(np.array(value), aval)  # pickle may have given it a buffer of its caller's


def host_value(x: Any) -> Any:
    """The NumPy array behind any concrete value.

    Raises:
        UnexpectedTracerError: `x` is a tracer (one that escaped, where only concrete values are at work).
        TypeError: `x` is not an array.
    """
    if type(x) is Array:
        return x._fetch()
    if isinstance(x, np.ndarray):
        return narrowed(x) if config.x64_compat else x
    if isinstance(x, Tracer):
        raise escaped(x, "an operation on concrete values")
    if (array_of := array_method(type(x))) is not None:
        return host_value(array_of(x))
    return np.asarray(x, dtype=get_aval(x).dtype)


def narrowed(x: Any) -> Any:
    """A NumPy array or scalar, 32 bits wide under `config.x64_compat`; wrapped around or infinite if too large."""
    dtype = dtypes.canonicalize_dtype(ndarray_aval(x).dtype)
    if dtype == x.dtype:
        return x
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def as_array(x: Any) -> Any:
    """`x` as an `Array` (tracers stay as they are); Python scalars become weakly typed ones.

    A NumPy array is copied: its owner may write to it, read-only or not. Under `config.x64_compat` it becomes 32 bits
    wide.

    Raises:
        TypeError: `x` is not an array.
    """
    if type(x) is Array or isinstance(x, Tracer):
        return x
    if isinstance(x, np.ndarray | np.generic):
        if config.x64_compat:
            x = narrowed(x)
        aval = ndarray_aval(x)
        return Array(np.array(x), aval)
    if (array_of := array_method(type(x))) is not None:
        return as_array(array_of(x))
    if type(x) in (bool, int, float, complex):
        aval = python_scalar_aval(x)
        return Array(np.asarray(x, dtype=aval.dtype), aval)
    aval = get_aval(x)
    return Array(np.array(x, dtype=aval.dtype), aval)


tree.mark_leaf_types(Array)
