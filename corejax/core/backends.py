"""Backends: what compiles programs and runs them on devices. The kernel has none; plugins provide them, by name.

A backend holds values in buffers, objects of a class of its own. An `Array` holds a buffer or a NumPy array.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from corejax.base.plugin_access import plugin_access
from corejax.base.provenance import Provenance
from corejax.base.restoring import Changed, Restoring
from corejax.base.tables import Table
from corejax.errors import BackendError, DuplicateRegistrationError, PluginError
from corejax.messages.homes import install_advice
from corejax.settings.config import config

if TYPE_CHECKING:
    from corejax.core.avals import ShapedArray
    from corejax.core.primitive import Primitive


class Device(Protocol):
    """One unit that programs run on.

    Attributes:
        id: its number among the devices of its platform.
        platform: its kind, `"cpu"`.
        device_kind: its model, for people.
    """

    id: int
    platform: str
    device_kind: str

    def memory_stats(self) -> Mapping[str, int] | None:
        """Bytes of its memory by name (`bytes_in_use`, `bytes_limit`), None where nobody counts them."""


class Executable(Protocol):
    """A compiled program.

    Attributes:
        calls_python: whether running it runs Python code, rules of primitives say.
    """

    calls_python: bool

    def run(self, buffers: Sequence[Any]) -> Sequence[Any]:
        """Run on buffers of the arguments; gives buffers of the results, which may still be computed."""

    def as_text(self) -> str:
        """The program as it runs, for people."""

    def cost_analysis(self) -> Mapping[str, float]:
        """Estimates for one run, by name (`flops`)."""

    def memory_analysis(self) -> Mapping[str, int]:
        """Bytes by name (`argument`, `output`, `temp`)."""


class CompileOptions(NamedTuple):
    """How a program is to be compiled.

    Attributes:
        device: where it runs; None: on the default device.
        binds: whether results are bound to the device; those of bound arguments are in any case.
        donated: whether the program gives the memory of an argument to its results, for each argument; empty: of none.
            A hint: what cannot be reused stays as it is.
        keep_unused: whether the executable takes arguments that the program does not use.
        flags: the backend's own options, as pairs of name and value, by name.
        devices: several devices that the program is shared out over, in the order in which shardings number them;
            empty: it runs on `device`.
        in_shardings, out_shardings: where each argument and each result is, None: the backend chooses; empty: of none.
        known: arguments whose values are known, as number, type and bytes: the program may be one for these values, and
            need not take them. A hint.
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
    """What a backend can do, known before it starts.

    Attributes:
        platforms: kinds of devices that it knows; the first is the default one.
        dtypes: names of the dtypes that its programs can have; None: all.
        lowering: the language that `lower` gives, `"StableHLO"`; empty: none.
        dispatcher: whether it has a `dispatcher`. That reads arrays' buffers unasked, so the buffers of arrays that
            are on the host are this backend's (of the first one that has one).
        options: names of the fields of `CompileOptions` that its `compile` and `lower` take, in an argument `options`,
            which is passed where it says something.
    """

    platforms: tuple[str, ...] = ("cpu",)
    dtypes: frozenset[str] | None = None
    lowering: str = ""
    dispatcher: bool = False
    options: frozenset[str] = frozenset()


class RepeatableCall(NamedTuple):
    """A call that has been run, as a dispatcher may repeat it for arguments of the same types.

    Attributes:
        executable: what ran; its results are the leaves of `result`.
        consts: arrays that it takes before the arguments.
        args, kwargs: the arguments, without static ones: pytrees whose leaves it takes after the constants.
        result: what the call returned.
    """

    executable: Any
    consts: Sequence[Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any


class Backend:
    """What a plugin provides one instance of (hook `corejax_provide_backends`).

    Attributes:
        name: what it is called in messages; best the name that it is provided by.
        capabilities: what it can do.
        buffer_type, device_type: the classes of its buffers (not `numpy.ndarray`) and of its devices.
    """

    name: str
    capabilities = Capabilities()
    buffer_type: type
    device_type: type

    def platform(self) -> str:
        """The kind of devices that programs are compiled for where none is named."""
        return self.capabilities.platforms[0]

    def devices(self, platform: str | None = None) -> Sequence[Device]:
        """The devices of a platform, of the default one unless given; at least one.

        Raises:
            BackendError: there are none.
        """
        raise NotImplementedError

    def default_device(self, platform: str | None = None) -> Device:
        """Where programs run unless told otherwise: the first device.

        Raises:
            BackendError: `devices` gives none.
        """
        found = self.devices(platform)
        if not isinstance(found, Sequence) or not found:
            raise BackendError(
                f"backend {self.name!r}: its devices({platform!r}) gives {found!r}; a list of one device at least has "
                "to come, or a BackendError that says why there is none"
            )
        return found[0]

    def topology(self, name: str, platform: str) -> Sequence[Device]:
        """Devices that need not be there, to compile for; of a backend that can.

        Args:
            name: what they are like, in the backend's own terms (XLA's CPUs: `"8x8"`).
            platform: their platform.

        Raises:
            BackendError: it compiles for its own devices alone.
        """
        raise BackendError(f"backend {self.name!r} compiles for its own devices alone, not for a topology {name!r}")

    def put(self, value: Any, aval: ShapedArray, device: Device | None = None) -> Any:
        """A buffer with a value.

        Args:
            value: a NumPy array that nobody writes to, or a buffer of this backend's.
            aval: its type.
            device: where to; the default device unless given. A backend of programs over several devices takes
                shardings, too.

        Raises:
            MemoryError: there is no place for it.
        """
        raise NotImplementedError

    def fetch(self, buffer: Any) -> Any:
        """The buffer's value as a NumPy array that nobody writes to; waits until it is computed."""
        raise NotImplementedError

    def start_fetch(self, buffer: Any) -> None:
        """Begin what `fetch` will wait for."""

    def device_of(self, buffer: Any) -> Device:
        """Where a buffer is: a device, or a sharding (which has a `device_set`)."""
        raise NotImplementedError

    def bound_to(self, buffer: Any) -> Device | None:
        """The device, or sharding, that a buffer is bound to: programs that take it run there.

        None where it may be copied.
        """
        return None

    def is_spread(self, buffer: Any) -> bool:
        """Whether parts of the value are on several devices: eager operations on it are then this backend's."""
        return False

    def evaluate(self, primitive: Primitive, arrays: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
        """Results of one operation on arrays, some of which are spread; of a backend that has such ones."""
        raise NotImplementedError

    def run_program(self, closed: Any, arrays: Sequence[Any], name: str) -> list[Any] | None:
        """Compile and run a program of several eager operations on large arrays.

        Args:
            closed: the program, a `ClosedJaxpr`.
            arrays: its operands, on the host or on one device.
            name: the function's that was called, for profiles.

        Returns:
            Its results; None if the operations are better evaluated one by one.
        """
        return None

    def is_ready(self, buffer: Any) -> bool:
        """Whether the value is computed, so that reading it waits for nothing."""
        return True

    def is_deleted(self, buffer: Any) -> bool:
        """Whether a program took the buffer's memory for its results (`CompileOptions.donated`)."""
        return False

    def block_until_ready(self, buffers: Sequence[Any]) -> None:
        """Wait until buffers hold their values; raises what went wrong in computing them."""

    def compile(
        self,
        closed: Any,
        *,
        name: str,
        platform: str | None = None,
        options: CompileOptions = DEFAULT_OPTIONS,
    ) -> Executable:
        """Compile a program for a device.

        Args:
            closed: the program, a `ClosedJaxpr`. Its arguments are the executable's; its constants are part of it.
            name: the function's, for messages.
            platform: for the first device of this one, the default platform unless given.
            options: what of them `capabilities.options` names; a backend that names none need not take them.
        """
        raise NotImplementedError

    def lower(
        self,
        closed: Any,
        *,
        name: str,
        platform: str | None = None,
        options: CompileOptions = DEFAULT_OPTIONS,
    ) -> Any:
        """The program in the language of `capabilities.lowering`: an object with `as_text(*, pretty, debug_info)`."""
        raise NotImplementedError

    def dispatcher(
        self,
        name: str,
        miss: Callable[..., tuple[Any, RepeatableCall | None]],
        *,
        static_argnums: Sequence[int] = (),
        static_argnames: Sequence[str] = (),
    ) -> Any:
        """A callable that repeats calls by the types of their arguments, without Python in between.

        Args:
            name: the function's.
            miss: called as the callable was, where it knows no call to repeat. Gives the result, and the call to
                repeat, or None: ask again.
            static_argnums: positions of arguments whose values count, not their types.
            static_argnames: the same of keyword arguments.

        Returns:
            The callable, on which attributes can be set; its method `_clear_cache` has it ask again for everything.
        """
        raise NotImplementedError


def problem_of(backend: Backend) -> str:
    """What a backend lacks, by what its capabilities say, or what is wrong with an attribute; to follow its name."""
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
    kept = backend.buffer_type
    if not isinstance(kept, type) or kept is np.ndarray:
        return f": buffer_type has to be a class{' of its own' if kept is np.ndarray else ''}, got {kept!r}"
    if not isinstance(backend.device_type, type | UnionType):
        return f": device_type has to be a class, or a union of some, got {backend.device_type!r}"
    if not isinstance(backend.name, str):
        return f": name has to be a string, got {backend.name!r}"
    return "" if capabilities.platforms else ": capabilities.platforms has to name one platform at least"


class Target(NamedTuple):
    """What to compile for; the platform is None for the backend's default one."""

    backend: Backend
    platform: str | None


class _State(threading.local):
    running: Target | None = None


class Backends:
    """The backends that plugins provide, each imported at first use; the first one is the default.

    Attributes:
        provided: name -> (`module:object`, the plugin's record).
    """

    def __init__(self) -> None:
        self.provided: Table[str, tuple[str, Any]] = Table("backend", changed=self._changed, of_hooks=True)
        self._loaded: dict[str, Backend] = {}
        self._found: dict[tuple[str, str], Target] = {}  # by what was asked for, and the setting
        self._of_buffers: dict[type, Backend] = {}
        self._state = _State()
        self.of_dispatcher: Backend | None = None  # makes the buffers of arrays that are on the host

    def provide(self, name: str, target: str, owner: Any, *, by: Provenance | None = None) -> None:
        """Add a backend of a plugin: `owner` is its record, `by` says where it is declared.

        Raises:
            DuplicateRegistrationError: there is one of that name.
        """
        if name in self.provided:
            earlier = self.provided[name][1].title
            raise DuplicateRegistrationError(
                f"backend {name!r} is provided by plugin {earlier}; plugin {owner.title} provides a second one"
            )
        self.provided.register(name, (target, owner), provenance=by)

    def _changed(self, name: str, entry: Any) -> None:
        """Forget the object of a backend that is gone, or is another one now."""
        self._found.clear()
        backend = self._loaded.pop(name, None)
        if backend is not None and backend not in self._loaded.values():
            self._of_buffers.pop(backend.buffer_type, None)
            self.of_dispatcher = None if self.of_dispatcher is backend else self.of_dispatcher

    def owner_of(self, backend: Backend) -> Any:
        """The record of the plugin that provides a backend in use; None where it is gone."""
        names = (name for name, loaded in self._loaded.items() if loaded is backend and name in self.provided)
        return next((self.provided[name][1] for name in names), None)

    def names(self) -> list[str]:
        """What there is, the default one first where no setting says otherwise; imports no backend."""
        plugin_access().load()
        return list(self.provided)

    def load(self, name: str) -> Backend:
        """One of `names()`.

        Raises:
            PluginError: it cannot be imported.
        """
        found = self._loaded.get(name)
        if found is None:
            found = self._loaded[name] = plugin_access().import_backend(name)
            self._of_buffers[found.buffer_type] = found
            if found.capabilities.dispatcher and self.of_dispatcher is None:
                self.of_dispatcher = found
        return found

    def find(self, name: str | None = None) -> Target:
        """What to compile for.

        Args:
            name: of a backend, or of a platform: that of the default backend, or of the first one that has it.
                By default the setting `backend`, or the first backend there is.

        Raises:
            BackendError: there is none of that name.
            PluginError: it cannot be imported.
        """
        asked = (name or "", config.backend)
        found = self._found.get(asked)
        if found is None:
            found = self._found[asked] = self._find(name)
        return found

    def _find(self, name: str | None) -> Target:
        plugin_access().load()
        asked = name or config.backend or next(iter(self.provided), "")
        if asked in self.provided:
            return Target(self.load(asked), None)
        for backend in self._all():
            if asked in backend.capabilities.platforms:
                return Target(backend, asked)
        raise self._unknown(name)

    def _all(self) -> Iterator[Backend]:
        """The backends, the default one first; of the others only those that can be imported."""
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
            f"no backend is named {name or config.backend!r}{where}, and none has a platform of that name; there are "
            f"{known}"
        )

    def of_buffer(self, buffer: Any) -> Backend | None:
        """Whose buffer it is; None of what is none."""
        return self._of_buffers.get(type(buffer))

    def of_device(self, device: Any) -> Backend:
        """Whose device it is; of a sharding (which has a `device_tuple`) whose its devices are.

        Raises:
            TypeError: it is no device of a backend in use.
        """
        device = next(iter(getattr(device, "device_tuple", ())), device)
        for backend in list(self._loaded.values()):
            if isinstance(device, backend.device_type):
                return backend
        raise TypeError(f"a device is one of corejax.devices(), got {device!r} of type {type(device).__name__}")

    def running(self, backend: Backend, platform: str | None = None) -> Restoring:
        """For a backend that runs rules of primitives in Python: programs inside its program go to it as well.

        For a `with` block.
        """
        return Changed(self._state, "running", Target(backend, platform))

    def inside(self, name: str | None) -> Target:
        """As `find`, of a program that may be inside another one, which runs in this thread."""
        return self._state.running or self.find(name)


backends = Backends()
