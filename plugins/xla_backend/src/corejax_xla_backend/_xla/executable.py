"""From a program to StableHLO, and from that to an executable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax.extend import ClosedJaxpr, Var, bytes_text, check_memory
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._lowering import host_callback
from corejax_xla_backend._lowering.locations import without_locations
from corejax_xla_backend._lowering.module import ModuleBuilder
from corejax_xla_backend._xla.buffers import LARGE


class XlaExecutable(NamedTuple):
    """A program compiled for one device.

    Attributes:
        executable: it takes the operands that are used.
        kept: which of (constants, arguments) those are.
        consts: buffers of the constants.
        callbacks: Python functions that it calls.
        name: the program's, for messages.
        nbytes: bytes of the machine's memory that its results and temporaries take.
    """

    executable: Any
    kept: tuple[bool, ...]
    consts: list[Any]
    callbacks: list[Callable[..., Any]]
    name: str
    nbytes: int

    @property
    def calls_python(self) -> bool:
        """Whether it calls rules of primitives back."""
        return bool(self.callbacks)

    def run(self, buffers: Sequence[Any]) -> list[Any]:
        """Run on buffers; the results are computed when they are read.

        Raises:
            MemoryError: the results and temporaries are larger than the machine's memory.
        """
        if self.nbytes > LARGE:
            check_memory(self.nbytes, f"{self._program()} (results and temporaries)")
        used = [b for b, keep in zip((*self.consts, *buffers), self.kept, strict=True) if keep]
        try:
            return _run_with_callbacks(self.executable, used) if self.callbacks else self.executable(*used)
        except (RuntimeError, ValueError) as error:
            if not _jaxlib.is_out_of_memory(error):
                raise
            raise MemoryError(
                f"{self._program()} takes {bytes_text(self.nbytes)} beside its arguments: {error}"
            ) from None

    def as_text(self) -> str:
        """The program as XLA runs it, in HLO text."""
        return self.executable.optimized_hlo()  # type: ignore[no-any-return]

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates for one run, by name (`flops`, `bytes accessed`, ...)."""
        return self.executable.cost_analysis()  # type: ignore[no-any-return]

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, outputs, temporaries and code."""
        return self.executable.memory_analysis()  # type: ignore[no-any-return]

    def _program(self) -> str:
        results = ", ".join(aval.str_short(short_dtypes=False) for aval in self.executable.out_avals)
        return f"the compiled program {self.name!r}, with results [{results}],"


def _run_with_callbacks(executable: Any, buffers: list[Any]) -> list[Any]:
    """Run, and wait before and after.

    Were such programs queued up, the callbacks of the first could wait for computations of their own that found no
    place behind the others.
    """
    _jaxlib.block_until_ready(buffers)
    try:
        outs: list[Any] = executable(*buffers)
        _jaxlib.block_until_ready(outs)
    except Exception as error:
        failure = host_callback.original_failure(error)
        if failure is error:
            raise
    else:
        return outs
    raise failure


class Lowering(NamedTuple):
    """A program as text.

    Attributes:
        text: StableHLO, with locations.
        kept: which of (constants, arguments) it takes.
        callbacks: Python functions that it calls, by index.
    """

    text: str
    kept: tuple[bool, ...]
    callbacks: list[Callable[..., Any]]

    def as_text(self, *, pretty: bool = True, debug_info: bool = False) -> str:
        """As `Lowered.as_text`."""
        text = self.text if debug_info else without_locations(self.text)
        return _jaxlib.module_text(_jaxlib.parse_module(text), debug_info=debug_info) if pretty else text


def lower(closed: ClosedJaxpr, name: str, platform: str) -> Lowering:
    """StableHLO of a program."""
    jaxpr = closed.jaxpr
    used = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is Var} | {
        v for v in jaxpr.outvars if type(v) is Var
    }
    kept = tuple(v in used for v in (*jaxpr.constvars, *jaxpr.invars))
    builder = ModuleBuilder(platform, name)
    builder.add_main(closed, kept)
    return Lowering(builder.text(f"jit_{name}", locations=True), kept, builder.callbacks)


def compile_program(closed: ClosedJaxpr, name: str, device: Any, consts: list[Any]) -> XlaExecutable:
    """Compile for a device.

    Args:
        closed: the program.
        name: the function's.
        device: the device.
        consts: buffers of the program's constants.
    """
    text, kept, callbacks = lower(closed, name, device.platform)
    module = _jaxlib.parse_module(text)
    executable = _jaxlib.compile_module(module, closed.out_avals, device, callbacks=callbacks)
    nbytes = executable.nbytes() if device.platform == "cpu" else 0
    return XlaExecutable(executable, kept, consts, callbacks, name, nbytes)
