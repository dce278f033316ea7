"""Backends compile programs and run them on devices. The kernel has none; plugins provide them, by name.

A backend holds values in buffers, objects of its own class. An `Array` holds a buffer or a NumPy array.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from corejax.base.plugin_access import plugin_access
from corejax.base.provenance import Provenance
from corejax.base.restoring import Changed, Restoring
from corejax.base.tables import Table
from corejax.errors import BackendError, DuplicateRegistrationError, PluginError
from corejax.messages.homes import homes, install_advice
from corejax.settings.config import config

if TYPE_CHECKING:
    from corejax.core.avals import ShapedArray
    from corejax.core.primitive import Primitive


class Device(Protocol):
    """One unit that programs run on.

    Attributes:
        id: its number among the devices of its platform.
        platform: the kind of device, such as `"cpu"`.
        device_kind: its model, for display.
    """

    id: int
    platform: str
    device_kind: str

    def memory_stats(self) -> Mapping[str, int] | None:
        """Return statistics in bytes, by name (`bytes_in_use`, `bytes_limit`), or None if the device has none."""


class Executable(Protocol):
    """A compiled program."""

    @property
    def calls_python(self) -> bool:
        """Whether running it runs Python code, such as rules of primitives."""

    def run(self, buffers: Sequence[Any]) -> Sequence[Any]:
        """Run on buffers of the arguments and return buffers of the results, which may still be being computed."""

    def as_text(self) -> str:
        """Return the compiled program as text."""

    def cost_analysis(self) -> Mapping[str, float]:
        """Return estimates for one run, by name (`flops`)."""

    def memory_analysis(self) -> Mapping[str, int]:
        """Return numbers of bytes, by name (`argument`, `output`, `temp`)."""


class CompileOptions(NamedTuple):
    """The options of one compilation.

    Attributes:
        device: the device to run on; None for the default device.
        binds: whether results are bound to the device; results of bound arguments are bound in any case.
        donated: for each argument, whether the program may reuse its memory for results; empty if none is donated.
            A hint: memory that cannot be reused stays valid.
        keep_unused: whether the executable takes arguments that the program does not use.
        flags: the backend's own options, as pairs of name and value, sorted by name.
        devices: the devices over which the program is sharded, in the order in which shardings number them; empty for
            a program on `device` only.
        in_shardings, out_shardings: the sharding of each argument and each result, None if the backend chooses it;
            empty if the program is not sharded.
        known: number, type and bytes of each argument with a known value. A hint: the backend may specialise the
            program for these values; it then need not take these arguments.
    """

    device: Any = None
    binds: bool = False
    donated: tuple[bool, ...] = ()
    keep_unused: bool = False
    flags: tuple[tuple[str, Any], ...] = ()
    devices: tuple[Any, ...] = ()
    in_shardings: tuple[Any, ...] = ()
    out_shardings: tuple[Any, ...] = ()
    known: tuple[tuple[int, ShapedArray, bytes], ...] = ()


DEFAULT_OPTIONS = CompileOptions()


class Capabilities(NamedTuple):
    """The features of a backend, known before it starts.

    Attributes:
        platforms: the kinds of devices that it supports; the first is the default.
        dtypes: names of the dtypes that its programs support; None for all.
        lowering: the language that `lower` returns, such as `"StableHLO"`; empty if it has no `lower`.
        dispatcher: whether it has a `dispatcher`. A dispatcher reads the buffers of arrays directly, so an array on the
            host gets its buffer from this backend (from the first such backend if there are several).
        options: names of the fields of `CompileOptions` that its `compile` and `lower` support. The argument `options`
            is passed only if one of these fields differs from its default.
    """

    platforms: tuple[str, ...] = ("cpu",)
    dtypes: frozenset[str] | None = None
    lowering: str = ""
    dispatcher: bool = False
    options: frozenset[str] = frozenset()


class RepeatableCall(NamedTuple):
    """A finished call, which a dispatcher may repeat for arguments of the same types.

    Attributes:
        executable: the executable that ran; its results are the leaves of `result`.
        consts: arrays that the executable takes before the arguments.
        args, kwargs: the arguments without the static ones: pytrees; their leaves follow the constants.
        result: the return value of the call.
    """

    executable: Any
    consts: Sequence[Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any


class Backend:
    """Base class of backends; a plugin provides an instance of its subclass (hook `corejax_provide_backends`).

    Attributes:
        name: the name in messages, preferably the name under which the plugin provides it.
        capabilities: the features that it supports.
        buffer_type, device_type: the classes of its buffers (not `numpy.ndarray`) and of its devices.
    """

    name: str
    capabilities = Capabilities()
    buffer_type: type
    device_type: type

    def platform(self) -> str:
        """Return the platform that programs are compiled for by default."""
        return self.capabilities.platforms[0]

    def devices(self, platform: str | None = None) -> Sequence[Device]:
        """Return the devices of a platform, by default the default platform; at least one.

        Raises:
            BackendError: the platform has no devices.
        """
        raise NotImplementedError

    def default_device(self, platform: str | None = None) -> Device:
        """Return the device that programs run on by default: the first device.

        Raises:
            BackendError: `devices` returns no device.
        """
        devices = self.devices(platform)
        if not isinstance(devices, Sequence) or not devices:
            raise BackendError(
                f"backend {self.name!r}: its devices({platform!r}) returned {devices!r}; it has to return a list of at "
                "least one device, or raise a BackendError with the reason"
            )
        return devices[0]

    def topology(self, name: str, platform: str) -> Sequence[Device]:
        """Return devices that programs can be compiled for without their being present.

        Args:
            name: the topology, in the backend's own notation (`"8x8"` for XLA's CPUs).
            platform: the platform of the devices.

        Raises:
            BackendError: the backend does not support this.
        """
        raise BackendError(f"backend {self.name!r} compiles for its own devices alone, not for a topology {name!r}")

    def put(self, value: object, aval: ShapedArray, device: Device | None = None) -> Any:
        """Return a buffer with a value.

        Args:
            value: a NumPy array that no code writes to, or a buffer of this backend.
            aval: the type of the value.
            device: the device, by default the default device. A backend of sharded programs accepts shardings as well.

        Raises:
            MemoryError: the device does not have enough memory.
        """
        raise NotImplementedError

    def fetch(self, buffer: Any) -> Any:
        """Wait for the buffer's value and return it as a NumPy array that no code writes to."""
        raise NotImplementedError

    def start_fetch(self, buffer: Any) -> None:
        """Start the transfer that `fetch` waits for."""

    def device_of(self, buffer: Any) -> Device:
        """Return the device that holds a buffer, or its sharding (which has a `device_set`)."""
        raise NotImplementedError

    def bound_to(self, buffer: Any) -> Device | None:
        """Return the device, or sharding, on which programs that take the buffer must run; None for any device."""
        return None

    def is_spread(self, buffer: Any) -> bool:
        """Whether the value is sharded over several devices; `evaluate` then runs eager operations on it."""
        return False

    def evaluate(self, primitive: Primitive, arrays: Sequence[Any], params: Mapping[str, object]) -> list[Any]:
        """Return the results of one operation on arrays of which at least one is sharded."""
        raise NotImplementedError

    def run_program(self, closed: Any, arrays: Sequence[Any], name: str) -> list[Any] | None:
        """Compile and run a program of several eager operations on large arrays.

        Args:
            closed: the program, a `ClosedJaxpr`.
            arrays: its operands, on the host or on one device.
            name: the name of the function that was called, for profiles.

        Returns:
            Its results; None if the kernel should evaluate the operations one by one.
        """
        return None

    def is_ready(self, buffer: Any) -> bool:
        """Whether the value has been computed, so that reading it does not wait."""
        return True

    def is_deleted(self, buffer: Any) -> bool:
        """Whether a program has reused the buffer's memory for its results (`CompileOptions.donated`)."""
        return False

    def block_until_ready(self, buffers: Sequence[Any]) -> None:
        """Wait until buffers hold their values; raise the error of a computation that failed."""

    def compile(
        self, closed: Any, *, name: str, platform: str | None = None, options: CompileOptions = DEFAULT_OPTIONS
    ) -> Executable:
        """Compile a program for a device.

        Args:
            closed: the program, a `ClosedJaxpr`. The executable takes its arguments and contains its constants.
            name: the function's name, for messages.
            platform: compile for the first device of this platform, by default the default platform.
            options: the options that `capabilities.options` names; not passed to a backend that names none.
        """
        raise NotImplementedError

    def lower(
        self, closed: Any, *, name: str, platform: str | None = None, options: CompileOptions = DEFAULT_OPTIONS
    ) -> Any:
        """Return the program in the language of `capabilities.lowering`, with `as_text(*, pretty, debug_info)`."""
        raise NotImplementedError

    def dispatcher(
        self,
        name: str,
        miss: Callable[..., tuple[object, RepeatableCall | None]],
        *,
        static_argnums: Sequence[int] = (),
        static_argnames: Sequence[str] = (),
    ) -> Any:
        """Return a callable that dispatches calls by the types of their arguments without running Python.

        Args:
            name: the function's name.
            miss: called with the arguments if the callable has no cached call for their types. Returns the result, and
                the call to repeat from then on, or None if the next call has to ask again.
            static_argnums: positions of arguments that are cached by value rather than by type.
            static_argnames: names of keyword arguments that are cached by value.

        Returns:
            The callable, on which attributes can be set; its method `_clear_cache` empties the cache.
        """
        raise NotImplementedError


def problem_of(backend: Backend) -> str:
    """Describe the methods that a backend lacks or a wrong attribute, as text to follow its name; "" if it is valid."""
    capabilities = backend.capabilities
    if not isinstance(capabilities, Capabilities):
        return ", lacks capabilities"
    needed = ["devices", "put", "fetch", "device_of", "compile"]
    needed += ["lower"] if capabilities.lowering else []
    needed += ["dispatcher"] if capabilities.dispatcher else []
    missing = [name for name in needed if getattr(type(backend), name) is getattr(Backend, name)]
    missing += [name for name in ("name", "buffer_type", "device_type") if not hasattr(backend, name)]
    if missing:
        return f", lacks {', '.join(missing)}"
    import numpy as np  # needed once a backend is imported

    kind = backend.buffer_type
    if not isinstance(kind, type) or kind is np.ndarray:
        return f": buffer_type has to be a class{' of its own' if kind is np.ndarray else ''}, got {kind!r}"
    if not isinstance(backend.device_type, type | UnionType):
        return f": device_type has to be a class, or a union of some, got {backend.device_type!r}"
    if not isinstance(backend.name, str):
        return f": name has to be a string, got {backend.name!r}"
    return "" if capabilities.platforms else ": capabilities.platforms has to name at least one platform"


class Target(NamedTuple):
    """A backend to compile for, and a platform; None for the backend's default platform."""

    backend: Backend
    platform: str | None


class _State(threading.local):
    running: Target | None = None


class Backends:
    """The backends that plugins provide, each imported at first use; the first one is the default.

    Attributes:
        provided: name -> (`module:object`, the plugin's record).
        of_dispatcher: the loaded backend with a dispatcher, which makes the buffers of arrays on the host; or None.
    """

    def __init__(self) -> None:
        self.provided: Table[str, tuple[str, Any]] = Table("backend", changed=self._changed, of_hooks=True)
        self._loaded: dict[str, Backend] = {}
        # Caches `find` by its argument and the setting `backend`; cleared if a plugin adds or removes a backend.
        self._targets: dict[tuple[str, str], Target] = {}
        self._of_buffers: dict[type, Backend] = {}
        self._state = _State()
        self.of_dispatcher: Backend | None = None

    def provide(self, name: str, target: str, owner: Any, *, by: Provenance | None = None) -> None:
        """Register a backend of a plugin: `owner` is the plugin's record, `by` the provenance of the declaration.

        Raises:
            DuplicateRegistrationError: a backend of that name is registered.
        """
        if name in self.provided:
            earlier = self.provided[name][1].title
            message = f"backend {name!r} is provided by plugin {earlier}; plugin {owner.title} provides a second one"
            raise DuplicateRegistrationError(message)
        self.provided.register(name, (target, owner), provenance=by)

    def _changed(self, name: str, entry: object) -> None:
        """Discard the instance of a backend that has been removed or replaced."""
        self._targets.clear()
        backend = self._loaded.pop(name, None)
        if backend is not None and backend not in self._loaded.values():
            self._of_buffers.pop(backend.buffer_type, None)
            self.of_dispatcher = None if self.of_dispatcher is backend else self.of_dispatcher

    def owner_of(self, backend: Backend) -> Any:
        """Return the record of the plugin that provides a loaded backend, or None if the plugin has been removed."""
        names = (name for name, loaded in self._loaded.items() if loaded is backend and name in self.provided)
        return next((self.provided[name][1] for name in names), None)

    def names(self) -> list[str]:
        """Return the names of all backends, the default first unless a setting names another; imports no backend."""
        plugin_access().load(homes("backends").values())
        return list(self.provided)

    def load(self, name: str) -> Backend:
        """Return the backend of a name in `names()`, imported at the first call.

        Raises:
            PluginError: it cannot be imported.
        """
        backend: Backend | None = self._loaded.get(name)
        if backend is None:
            backend = self._loaded[name] = plugin_access().import_backend(name)
            self._of_buffers[backend.buffer_type] = backend
            if backend.capabilities.dispatcher and self.of_dispatcher is None:
                self.of_dispatcher = backend
        return backend

    def find(self, name: str | None = None) -> Target:
        """Return the backend, and the platform, to compile for.

        Args:
            name: the name of a backend, or of a platform; the default backend is asked first for a platform.
                By default the setting `backend`, or the first backend.

        Raises:
            BackendError: no backend or platform has that name.
            PluginError: the backend cannot be imported.
        """
        key = (name or "", config.backend)
        target = self._targets.get(key)
        if target is None:
            target = self._targets[key] = self._find(name)
        return target

    def _find(self, name: str | None) -> Target:
        plugin_access().load(homes("backends").values())
        wanted = name or config.backend or next(iter(self.provided), "")
        if wanted in self.provided:
            return Target(self.load(wanted), None)
        for backend in self._all():
            if wanted in backend.capabilities.platforms:
                return Target(backend, wanted)
        raise self._unknown(name)

    def _all(self) -> Iterator[Backend]:
        """Yield the backends, the default one first; skip others that cannot be imported."""
        names = list(self.provided)
        default = config.backend if config.backend in self.provided else next(iter(names), "")
        if default:
            yield self.load(default)
        for name in names:
            if name != default:
                with suppress(PluginError):
                    yield self.load(name)

    def _unknown(self, name: str | None) -> BackendError:
        if not self.provided:
            return BackendError(f"there is no backend{install_advice('backends')}")
        known = ", ".join(f"{b.name!r} (platforms {', '.join(b.capabilities.platforms)})" for b in self._all())
        where = "" if name else " (the setting backend, COREJAX_BACKEND)"
        return BackendError(
            f"Unknown backend {name or config.backend!r}{where}: none has this name, or a platform of it; there are "
            f"{known}"
        )

    def of_buffer(self, buffer: Any) -> Backend | None:
        """Return the backend of a buffer, or None if `buffer` is not a device buffer."""
        return self._of_buffers.get(type(buffer))

    def of_device(self, device: object) -> Backend:
        """Return the backend of a device, or of the devices of a sharding (which has a `device_tuple`).

        Raises:
            TypeError: no loaded backend has such a device.
        """
        device = next(iter(getattr(device, "device_tuple", ())), device)
        for backend in list(self._loaded.values()):
            if isinstance(device, backend.device_type):
                return backend
        raise TypeError(f"a device is one of corejax.devices(), got {device!r} of type {type(device).__name__}")

    def running(self, backend: Backend, platform: str | None = None) -> Restoring:
        """Make `inside` return a target in a `with` block, in which the backend runs a program's rules in Python."""
        return Changed(self._state, "running", Target(backend, platform))

    def inside(self, name: str | None) -> Target:
        """Return the target for a program that may be inside another program running in this thread; see `find`."""
        return self._state.running or self.find(name)


backends = Backends()
