"""`XlaExecutable`: a compiled program with its constants and callbacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax.extend.devices import bytes_text, check_memory
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._callbacks import Failures, run_calling_back
from corejax_xla_backend.sharding import SingleDeviceSharding

_OVER_SEVERAL = _jaxlib.PartitionedExecutable | _jaxlib.AheadProgram


class XlaExecutable(NamedTuple):
    """A compiled program.

    Attributes:
        executable: jaxlib's executable, which takes the used operands only.
        kept: a flag for each of (constants, arguments): whether the executable takes it.
        consts: buffers of the constants.
        callbacks: Python functions that the program calls.
        name: the program's name, for messages.
        nbytes: bytes of the machine's memory that its results and temporaries take.
        origin: where the executable comes from; empty if this process has compiled it now.
        failures: exceptions of the callbacks, if the program must run to its end in spite of them.
    """

    executable: Any
    kept: tuple[bool, ...]
    consts: list[Any]
    callbacks: list[Callable[..., Any]]
    name: str
    nbytes: int
    origin: str = ""
    failures: Failures | None = None

    @property
    def calls_python(self) -> bool:
        """Whether the program calls Python functions."""
        return bool(self.callbacks)

    def run(self, buffers: Sequence[Any]) -> list[Any]:
        """Run on buffers; the results are computed when they are read.

        Raises:
            MemoryError: the results and temporaries are larger than the machine's memory.
        """
        if self.nbytes > _jaxlib.LARGE:
            check_memory(self.nbytes, f"{self._program()} (results and temporaries)")
        used = [b for b, keep in zip((*self.consts, *buffers), self.kept, strict=True) if keep]
        try:
            return self._run_with_callbacks(used) if self.callbacks else self.executable(*used)
        except (RuntimeError, ValueError) as error:
            if not _jaxlib.is_out_of_memory(error):
                raise
            raise MemoryError(
                f"{self._program()} takes {bytes_text(self.nbytes)} beside its arguments: {error}"
            ) from None

    @property
    def input_shardings(self) -> list[Any]:
        """Shardings that (constants, arguments) must have; None for those that the executable does not take."""
        if isinstance(self.executable, _OVER_SEVERAL):
            shardings = iter(self.executable.in_shardings)
            return [next(shardings) if keep else None for keep in self.kept]
        sharding = SingleDeviceSharding(self.executable.device)
        return [sharding if keep else None for keep in self.kept]

    @property
    def output_shardings(self) -> list[Any]:
        """Shardings of the results."""
        if isinstance(self.executable, _OVER_SEVERAL):
            return list(self.executable.out_shardings)
        return [SingleDeviceSharding(self.executable.device)] * len(self.executable.out_avals)

    def as_text(self) -> str:
        """Return the optimised program, in HLO text."""
        return self.executable.optimized_hlo()  # type: ignore[no-any-return]  # jaxlib has no types

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimates for one run, by name (`flops`, `bytes accessed`, ...)."""
        return self.executable.cost_analysis()  # type: ignore[no-any-return]  # jaxlib has no types

    def memory_analysis(self) -> dict[str, int]:
        """Return the bytes of arguments, outputs, temporaries and code."""
        return self.executable.memory_analysis()  # type: ignore[no-any-return]  # jaxlib has no types

    def _run_with_callbacks(self, buffers: list[Any]) -> list[Any]:
        """Run a program with callbacks, and wait before and after.

        If such programs were queued, the computations of the first one's callbacks would be queued behind the other
        programs and never run.
        """
        _jaxlib.block_until_ready(buffers)
        failed = 0 if self.failures is None else self.failures.count
        try:
            outs: list[Any] = run_calling_back(self.executable.run_and_wait, buffers, {})
        except Exception as error:
            from corejax_xla_backend._lowering.host_callback import original_failure

            failure = original_failure(error)
            if failure is error:
                raise
        else:
            if self.failures is not None:
                self.failures.raise_since(failed)
            return outs
        raise failure

    def _program(self) -> str:
        """Return the program's name and the types of its results, for messages."""
        results = ", ".join(aval.str_short(short_dtypes=False) for aval in self.executable.out_avals)
        return f"the compiled program {self.name!r}, with results [{results}],"
