"""`Array`, the immutable value that users hold: one type for values on the host and on devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, overload

import numpy as np

from corejax import dtypes, observe, tree
from corejax.arrays.backend_calls import fetched_by, place_of, put_by
from corejax.arrays.backends import Backend, backends
from corejax.arrays.conversions import HostConversions
from corejax.core.array_methods import ArrayMethods, missing
from corejax.core.avals import (
    ShapedArray,
    array_method,
    from_numbers,
    get_aval,
    ndarray_aval,
    numbers_of,
    python_scalar_aval,
)
from corejax.core.trace import Tracer, bottom_trace, current_trace, escaped, in_context
from corejax.core.value_types import Packed
from corejax.errors import PluginMissingError
from corejax.messages import source_info
from corejax.messages.homes import install_advice
from corejax.messages.marks import not_of_rule
from corejax.settings.config import config


class DeletionReason(NamedTuple):
    """The reason for the deletion of arrays, and the user's line that caused it."""

    reason: str
    source: Any


class Deleted(NamedTuple):
    """The placeholder for the buffer of a deleted array; holds the type, which the array may not have read yet."""

    why: DeletionReason
    aval: ShapedArray


class ElementBuffer:
    """A device buffer with the numbers that represent an array of an extended dtype.

    Dispatchers treat it as a pytree of one buffer; the dtype in the node distinguishes it from an array of numbers.
    """

    __slots__ = ("buffer", "dtype")

    def __init__(self, buffer: Any, dtype: np.dtype) -> None:
        self.buffer = buffer
        self.dtype = dtype

    @property
    def aval(self) -> ShapedArray:
        """The type of the array."""
        _, inner = dtypes.element_of(self.dtype)
        shape = self.buffer.aval.shape
        return ShapedArray(shape[: len(shape) - len(inner)], self.dtype)


def _backend(buffer: object = None) -> Backend:
    """Return the backend of a buffer, by default the backend with the dispatcher, which holds values of host arrays."""
    if type(buffer) is Deleted:
        line = source_info.describe_source(buffer.why.source)
        raise not_of_rule(RuntimeError(f"Array has been deleted at {line}: {buffer.why.reason}"))
    backend = backends.of_dispatcher if buffer is None else backends.of_buffer(buffer)
    if backend is None:
        raise PluginMissingError(f"no backend is loaded, so there are no device buffers{install_advice('backends')}")
    return backend


_ndarray = np.ndarray


class _ArrayType(type):
    """The metaclass that makes tracers instances of `Array`, for code that checks `isinstance(x, Array)`.

    Python calls `__instancecheck__` only for objects that are not of the exact type `Array`.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tracer) or super().__instancecheck__(instance)


class Array(HostConversions, ArrayMethods, metaclass=_ArrayType):
    """An immutable n-dimensional array; tracers are instances as well (`type(x) is Array` is true only for values).

    An array holds a NumPy array, or a device buffer and, once it has been read, its host view. Operators and most
    methods come from plugins (`corejax.core.array_methods`).

    Args:
        buffer: a device buffer, or a NumPy array or scalar. A NumPy array is copied, unless `aval` is given: then the
            array takes it over and makes it read-only.
        aval: its type; by default the buffer's own, strongly typed.
    """

    # Each slot is filled on first use: `_attribute`, the class's `__getattr__`, runs only for a slot that is unset. An
    # array on the host has no `_buf`: reading it creates the buffer, so that a backend's dispatcher can read buffers
    # without checking where arrays are. An array from a compiled function has no `aval` and perhaps no `_host`.
    # Invariant: `_host` and `_buf` hold the same value if both are set, and no code writes to either.
    __slots__ = ("__weakref__", "_buf", "_host", "aval")

    aval: ShapedArray
    _buf: Any
    _host: np.ndarray | None

    def __init__(self, _buf: Any, aval: ShapedArray | None = None) -> None:
        if type(_buf) is _ndarray:
            if aval is None:
                aval = ndarray_aval(_buf)
                _buf = np.array(_buf)
            _buf.setflags(False)  # a keyword argument would take twice as long
            self._host = _buf
            self.aval = aval
        else:  # the path of a compiled function's results, which does as little as possible
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
            del self._buf  # it is a NumPy scalar, or an instance of a subclass of `ndarray`
            host = np.array(buffer)
            host.setflags(write=False)
            self._host = host
            return host
        if name == "aval":  # unset if the array only passes from one compiled function to the next
            view = self._host
            buffer = _held(self)  # preferred to the host view, which does not know the weak type
            self.aval = aval = buffer.aval if view is None or buffer is not None else ndarray_aval(view)
            return aval
        if name.startswith("__"):  # NumPy looks up two such names before `__array__`; they must not load plugins
            raise AttributeError(f"'Array' object has no attribute {name!r}")
        return missing(self, name)

    if not TYPE_CHECKING:  # so that type checkers report misspelt names
        __getattr__ = _attribute

    def _fetch(self) -> np.ndarray:
        """Return the host view of the value, transferred from the device if needed."""
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
            if not backend.is_spread(numbers):  # operations on a sharded array must keep using its buffer
                self._host = host
        return host

    def _with_aval(self, aval: ShapedArray) -> Array:
        """Return the same value with a type that differs in weak type."""
        return Array(self._buf if self._host is None else self._host, aval)

    def _is_here(self) -> bool:
        """Whether this process can read the whole value; other processes may hold parts of it."""
        buffer = device_buffer(self)
        if buffer is None or type(buffer) is Deleted:
            return True
        place: Any = place_of(_backend(buffer), buffer)
        return bool(getattr(place, "is_fully_addressable", True) or place.is_fully_replicated)

    # -- places ------------------------------------------------------------------------------------------------

    def devices(self) -> set[Any]:
        """Return the devices that hold the array; for an array on the host, the one that it would be transferred to."""
        place: Any = self.device
        return set() if place is None else set(getattr(place, "device_set", {place}))

    @property
    def device(self) -> Any:
        """The device that holds the array, or the sharding of its parts.

        For an array on the host, the device to which it would be transferred.
        """
        buffer = device_buffer(self)
        if buffer is not None:
            return place_of(_backend(buffer), buffer)
        backend, platform = backends.find()
        return backend.default_device(platform)

    def to_device(self, device: object, /, *, stream: None = None) -> Array:
        """Return the array on a device; the array itself if it is already there.

        Raises:
            ValueError: `stream` is not None; streams are not supported.
        """
        if stream is not None:
            raise ValueError(f"to_device: streams are not supported, stream has to be None, got {stream!r}")
        return placed(self, backends.of_device(device), device)

    def copy_to_host_async(self) -> None:
        """Start the transfer to the host, if one is needed; reading the value waits for it."""
        buffer = device_buffer(self)
        if buffer is not None and self._host is None:
            _backend(buffer).start_fetch(buffer)

    def on_device_size_in_bytes(self) -> int:
        """Return the number of bytes of all elements."""
        return self.nbytes

    def is_deleted(self) -> bool:
        """Whether `delete` was called, or the array was donated to a compiled program."""
        buffer = device_buffer(self)
        return type(buffer) is Deleted or (buffer is not None and _backend(buffer).is_deleted(buffer))

    def is_ready(self) -> bool:
        """Whether the value has been computed, so that reading it does not wait.

        Raises:
            RuntimeError: the array was deleted.
        """
        buffer = device_buffer(self)
        return buffer is None or _backend(buffer).is_ready(buffer)

    def delete(self) -> None:
        """Delete the value; its memory is freed once no view of it exists. Using the array is an error afterwards."""
        if not self.is_deleted():
            self._buf = Deleted(DeletionReason("x.delete() was called", source_info.capture_source()), self.aval)
            self._host = None

    def block_until_ready(self) -> Array:
        """Wait until the value is computed, and return the array."""
        try:
            buffer = _read_buffer(self)
        except AttributeError:  # the array is on the host only
            return self
        backend = backends.of_buffer(buffer)
        if backend is None:
            buffer = device_buffer(self)
            backend = None if buffer is None else _backend(buffer)
        if backend is not None:
            backend.block_until_ready([buffer])
        return self

    def __iter__(self) -> Iterator[Any]:
        if (
            not self.shape
            or observe.checking
            or in_context()
            or current_trace() is not bottom_trace()
            or is_spread(self)
        ):
            return super().__iter__()  # by indexing operations, which a trace records and sharded arrays need
        row = ShapedArray(self.shape[1:], self.dtype, self.weak_type)
        return (Array(np.asarray(x, self.dtype), row) for x in self._fetch())

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self._fetch(), self.aval.refined(None)))

    def __copy__(self) -> Array:
        return self

    def __deepcopy__(self, memo: object) -> Array:
        """Return a copy of the value, which stays valid if this array is donated."""
        copy: Any = getattr(self, "copy", None)  # a plugin's method, which copies sharded arrays on their devices
        return Array(self._fetch(), self.aval) if copy is None else copy()


Value: TypeAlias = Array | Tracer


def backend_of_parts(array: Array) -> Backend | None:
    """Return the backend of an array that is sharded over several devices; None for any other array."""
    buffer = device_buffer(array) if array._host is None else None
    backend = backends.of_buffer(buffer)
    return backend if backend is not None and backend.is_spread(buffer) else None


def is_spread(array: Array) -> bool:
    """Whether the array is sharded: parts of its value are on several devices, and no device has all of it."""
    return array._host is None and backend_of_parts(array) is not None


def bound_device(array: Array, backend: Backend) -> Any:
    """Return the device of a backend that the array is bound to (by `device_put`), or None if it may be copied."""
    buffer = device_buffer(array)
    return backend.bound_to(buffer) if type(buffer) is backend.buffer_type else None


def buffer_of(array: Array, backend: Backend) -> Any:
    """Return the array's buffer of a backend, or a new one, which the array keeps if it is the dispatcher's."""
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


def _put(backend: Backend, array: Array, device: object = None) -> Any:
    """Transfer the array's value to a backend; an array of an extended dtype becomes an `ElementBuffer`."""
    host, aval = array._fetch(), array.aval
    optional_device = () if device is None else (device,)
    if aval.dtype.names is not None:
        return ElementBuffer(put_by(backend, numbers_of(host), aval.parts()[0], *optional_device), aval.dtype)
    return put_by(backend, host, aval, *optional_device)


def numbers_held(buffer: object) -> Any:
    """Return the backend's buffer, without the `ElementBuffer` around it."""
    return buffer.buffer if type(buffer) is ElementBuffer else buffer


def placed(array: Array, backend: Backend, device: Any = None) -> Array:
    """Return the array in a buffer of a backend, on a device (by default any); the array itself if it is there."""
    own = device_buffer(array)
    if device is None:
        buffer = buffer_of(array, backend)
        return array if device_buffer(array) is buffer else Array(buffer, array.aval)
    of_type = getattr(device, "of_type", None)  # defined by shardings that appear in the types of arrays
    aval = array.aval.refined(None if of_type is None else of_type(array.aval.ndim))
    if type(own) is not backend.buffer_type or array._host is not None:
        return Array(_put(backend, array, device), aval)
    binds = type(backend).bound_to is not Backend.bound_to
    current = backend.bound_to(own) if binds else backend.device_of(own)
    return array if current == device else Array(put_by(backend, own, array.aval.parts()[0], device), aval)


_read_buffer = vars(Array)["_buf"].__get__


def device_buffer(array: Array) -> Any:
    """Return the array's device buffer, or None if the array is on the host only."""
    return numbers_held(_held(array))


def _held(array: Array) -> Any:
    """Return the content of the slot `_buf` without filling it: a buffer, an `ElementBuffer`, `Deleted`, or None."""
    try:
        buffer = _read_buffer(array)
    except AttributeError:
        return None
    return None if isinstance(buffer, (np.generic, np.ndarray)) else buffer


def held_buffers(arrays: list[Array]) -> list[Any]:
    """Return `_held(x)` for each array; fast if all of them have device buffers."""
    try:
        held = [*map(_read_buffer, arrays)]
    except AttributeError:
        return [_held(x) for x in arrays]
    on_host = any(issubclass(kind, (np.generic, np.ndarray)) for kind in set(map(type, held)))
    return [_held(x) for x in arrays] if on_host else held


def _rebuild(value: np.ndarray, aval: ShapedArray) -> Array:
    return Array(np.array(value), aval)  # a copy, because pickle may pass a buffer that its caller owns


def host_value(x: object) -> Any:
    """Return the NumPy array behind any concrete value.

    Raises:
        UnexpectedTracerError: `x` is a tracer, which has escaped from its transformation.
        TypeError: `x` is not an array.
    """
    if type(x) is Array or type(x) is Packed:
        return x._fetch()
    if isinstance(x, np.ndarray):
        return narrowed(x) if config.x64_compat else x
    if isinstance(x, Tracer):
        raise escaped(x, "an operation on concrete values")
    if (array_of := array_method(type(x))) is not None:
        return host_value(array_of(x))
    return np.asarray(x, dtype=get_aval(x).dtype)


def boxed(x: Any, aval: ShapedArray) -> Any:
    """Return the `Array` for a NumPy array of a type; a packed value is its own box."""
    return x if type(x) is Packed else Array(x, aval)


def narrowed(x: Any) -> Any:
    """Convert a NumPy array or scalar to 32 bits under `config.x64_compat`; large values wrap or become infinite."""
    dtype = dtypes.canonicalize_dtype(ndarray_aval(x).dtype)
    if dtype == x.dtype:
        return x
    with np.errstate(all="ignore"):
        return x.astype(dtype)


@overload
def as_array(x: np.ndarray | np.generic | complex) -> Array: ...
@overload
def as_array(x: object) -> Value: ...
def as_array(x: Any) -> Value:
    """Convert `x` to an `Array`; tracers and values of value types are returned unchanged.

    Python scalars become weakly typed arrays.

    A NumPy array is copied, because its owner may write to it, even through another view of a read-only one. Under
    `config.x64_compat` it is converted to 32 bits.

    Raises:
        TypeError: `x` is not an array.
    """
    if type(x) is Array or isinstance(x, (Tracer, Packed)):
        return x  # type: ignore[return-value]  # a packed value is passed on as an array is
    if isinstance(x, (np.ndarray, np.generic)):
        if config.x64_compat:
            x = narrowed(x)
        aval = ndarray_aval(x)
        return Array(np.array(x), aval)
    if (array_of := array_method(type(x))) is not None:
        return as_array(array_of(x))  # type: ignore[no-any-return]  # the method's result has any type
    if type(x) in (bool, int, float, complex):
        aval = python_scalar_aval(x)
        return Array(np.asarray(x, dtype=aval.dtype), aval)
    aval = get_aval(x)
    return Array(np.array(x, dtype=aval.dtype), aval)


tree.mark_leaf_types(Array)
