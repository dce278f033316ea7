"""What a failure looks like: the small program, its operands and both results, and how to see it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corejax.extend import ClosedJaxpr
from corejax_explain.program_text import parse_jaxpr
from corejax_testing.arrays import wide
from corejax_testing.fuzzing.case import Case
from corejax_testing.fuzzing.relations import OPAQUE, ask
from corejax_testing.parts import size_of


@dataclass(frozen=True)
class Failure:
    """A relation that does not hold.

    Attributes:
        relation: as for `replay`: "jit of vjp".
        message: what is wrong.
        program: the program as text, to be parsed by `corejax.parse_jaxpr`.
        values: its operands.
        salt: what the relation draws its tangents and batches from.
        equations: in the program, nested ones too.
        found: how many there were before it was made small.
        seed, number: `corejax fuzz --seed SEED --first NUMBER --programs 1` finds it again,
        options: with these options, on which the programs of a seed depend too.
    """

    relation: str
    message: str
    program: str
    values: tuple[Any, ...]
    salt: int
    equations: int
    found: int
    seed: int
    number: int
    options: str = ""

    @classmethod
    def of(
        cls, case: Case, relation: str, message: str, found: int, seed: int, number: int, options: str = ""
    ) -> Failure:
        """Of a case that was made small."""
        values = tuple(np.array(x) for x in case.values)
        size = size_of(case.program)
        return cls(relation, message, str(case.program), values, case.salt, size, found, seed, number, options)

    def case(self) -> Case:
        """The program, parsed."""
        return parsed(self.program, self.values, self.salt)

    def snippet(self) -> str:
        """Python that shows it again."""
        values = ", ".join(map(literal, self.values))
        salt = f", salt={self.salt}" if self.salt else ""
        return (
            "import ml_dtypes, numpy as np\nfrom corejax_testing.fuzzing import replay\n\n"
            f'print(replay("""\n{self.program}\n""", [{values}], {self.relation!r}{salt}))'
        )

    def command(self) -> str:
        """What finds it again."""
        return f"corejax fuzz --seed {self.seed} --first {self.number} --programs 1{self.options}"

    def report(self) -> str:
        """For somebody who has to find the mistake."""
        again = self.snippet().splitlines()
        if OPAQUE in self.program:
            again = ["(not by its text: a parameter has none)"]
        if not self.program:
            again = ["(there is no program yet)"]
        shrunk = f" ({self.found} equations, made small to {self.equations})" if self.found != self.equations else ""
        return "\n".join(
            [
                f"program {self.number}{shrunk}: {self.relation}: {self.message}",
                *(f"  {line}" for line in self.program.splitlines()),
                "again, as it was found:",
                f"  {self.command()}",
                "again, small:",
                *(f"  {line}".rstrip() for line in again),
            ]
        )

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        fields = ("relation", "message", "program", "salt", "equations", "found", "seed", "number", "options")
        described = {name: getattr(self, name) for name in fields}
        return {**described, "values": [literal(x) for x in self.values], "snippet": self.snippet()}


def literal(x: Any) -> str:
    """Python that makes an array, exactly."""
    x = np.asarray(x)
    name = f"ml_dtypes.{x.dtype.name}" if x.dtype.kind == "V" or x.dtype.name.startswith(("bfloat", "float8")) else (
        f"np.{x.dtype.name}" if x.dtype != np.bool_ else "np.bool_")  # fmt: skip
    if x.size == 0:
        return f"np.zeros({x.shape}, {name})"
    numbers = repr(wide(x).tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
    return f"np.array({numbers}, {name})"


def parsed(text: str, values: Sequence[Any], salt: int = 0) -> Case:
    """The case of a program's text.

    Raises:
        JaxprSyntaxError: the text is not a program.
        TypeError: the program has constants, or takes other operands.
    """
    program = parse_jaxpr(text)
    if not isinstance(program, ClosedJaxpr):
        if program.constvars:
            raise TypeError("replay takes programs without constants")
        program = ClosedJaxpr(program, ())
    if len(values) != len(program.in_avals):
        raise TypeError(f"the program takes {len(program.in_avals)} operands, got {len(values)}")
    arrays = tuple(np.asarray(x) for x in values)
    for i, (x, aval) in enumerate(zip(arrays, program.in_avals, strict=True)):
        if (x.shape, x.dtype) != (aval.shape, aval.dtype):
            raise TypeError(f"operand {i} is of type {x.dtype.name}{list(x.shape)}, not {aval.str_short()}")
    return Case(program, arrays, salt)


def replay(text: str, values: Sequence[Any], relation: str, salt: int = 0) -> str | None:
    """Ask a relation of a program from its text.

    Args:
        text: the program, as a report shows it.
        values: its operands.
        relation: such as "jit" or "vmap of vjp".
        salt: what tangents and batches are drawn from.

    Returns:
        What is wrong, or None if it holds.

    Raises:
        JaxprSyntaxError: the text is not a program.
        TypeError: the operands do not fit.
        KeyError: there is no such relation.
        NotApplicable: it means nothing of this program.
    """
    failure = ask(parsed(text, values, salt), relation)
    return None if failure is None else failure[0]
