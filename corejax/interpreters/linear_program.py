"""A linear function as a program and its residuals: what is left of a tape when it travels as a pytree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.interpreters.linearize import LinearTape
from corejax.interpreters.transposition import UndefPrimal, backward_pass, pull
from corejax.ir.interpret import eval_jaxpr
from corejax.ir.jaxpr import Jaxpr
from corejax.source_info import TRANSPOSE
from corejax.trace import in_scope


class LinearProgram(NamedTuple):
    """The program of a tape; all of it but the residuals' values.

    Attributes:
        jaxpr: from the tangents of active inputs to the nonzero output tangents; constvars are the residuals.
        active: which inputs are differentiated.
        nonzeros: which outputs have tangents.
    """

    jaxpr: Jaxpr
    active: tuple[bool, ...]
    nonzeros: tuple[bool, ...]


class LinearCall(NamedTuple):
    """A linear program with its residuals; does what a tape does."""

    program: LinearProgram
    residuals: Sequence[Any]

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """Output tangents (None for zero) for input tangents."""
        program = self.program
        given = [t for t, active in zip(tangents, program.active, strict=True) if active]
        outs = iter(eval_jaxpr(program.jaxpr, self.residuals, given))
        return [next(outs) if nonzero else None for nonzero in program.nonzeros]

    def pull(self, cts: Sequence[Any]) -> list[Any]:
        """Input cotangents (None for zero) for output cotangents (None for zero)."""
        program = self.program
        given = [ct for ct, nonzero in zip(cts, program.nonzeros, strict=True) if nonzero]
        linear = [UndefPrimal(v.aval) for v in program.jaxpr.invars]
        outs = iter(in_scope(TRANSPOSE, backward_pass)(program.jaxpr, self.residuals, linear, given))
        return [next(outs) if active else None for active in program.active]


class TapeCall(NamedTuple):
    """A tape where it was made: no program is built until somebody asks for it."""

    tape: LinearTape

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """Output tangents (None for zero) for input tangents."""
        return self.tape.push(tangents)

    def pull(self, cts: Sequence[Any]) -> list[Any]:
        """Input cotangents (None for zero) for output cotangents (None for zero)."""
        return pull(self.tape, cts)

    @property
    def program(self) -> LinearProgram:
        """The tape as a program."""
        tape = self.tape
        flags = ((x is not None for x in xs) for xs in (tape.tracers, tape.outs))
        return LinearProgram(tape.to_jaxpr()[0], *(tuple(f) for f in flags))

    @property
    def residuals(self) -> Sequence[Any]:
        """The values that the program refers to."""
        return self.tape.to_jaxpr()[1]


__all__ = ["LinearCall", "LinearProgram", "TapeCall"]
