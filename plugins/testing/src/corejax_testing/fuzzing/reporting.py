"""Report a failure: the reduced program, its operands, what is wrong, and how to reproduce it."""

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
        relation: its name, as for `replay`: "jit of vjp".
        message: what is wrong.
        program: the program's text, for `corejax.parse_jaxpr`.
        values: the program's operands.
        salt: the seed of the relation's tangents and batches.
        equations: the number of equations in the program, including nested ones.
        found: the number of equations before the program was reduced.
        seed: the session's seed: `corejax fuzz --seed SEED --first NUMBER --programs 1` finds the failure again.
        number: the program's number in the session.
        options: further options of the command, on which the programs of a seed depend.
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
        """Return the failure of a case that was reduced."""
        values = tuple(np.array(x) for x in case.values)
        size = size_of(case.program)
        return cls(relation, message, str(case.program), values, case.salt, size, found, seed, number, options)

    def case(self) -> Case:
        """Return the case, with the program parsed from its text."""
        return parsed(self.program, self.values, self.salt)

    def snippet(self) -> str:
        """Return Python code that reproduces the failure from the reduced program."""
        values = ", ".join(map(literal, self.values))
        salt = f", salt={self.salt}" if self.salt else ""
        return (
            "import ml_dtypes, numpy as np\nfrom corejax_testing.fuzzing import replay\n\n"
            f'print(replay("""\n{self.program}\n""", [{values}], {self.relation!r}{salt}))'
        )

    def command(self) -> str:
        """Return the shell command that finds the failure again."""
        return f"corejax fuzz --seed {self.seed} --first {self.number} --programs 1{self.options}"

    def report(self) -> str:
        """Return a report that helps an author to find the mistake."""
        snippet = self.snippet().splitlines()
        if OPAQUE in self.program:
            snippet = ["(not from its text: a parameter cannot be printed)"]
        if not self.program:
            snippet = ["(the error came before there was a program)"]
        shrunk = f" ({self.found} equations, reduced to {self.equations})" if self.found != self.equations else ""
        return "\n".join(
            [
                f"program {self.number}{shrunk}: {self.relation}: {self.message}",
                *(f"  {line}" for line in self.program.splitlines()),
                "to reproduce the original:",
                f"  {self.command()}",
                "to reproduce the reduced program:",
                *(f"  {line}".rstrip() for line in snippet),
            ]
        )

    def as_json(self) -> dict[str, Any]:
        """Return the failure as a dict for JSON."""
        fields = ("relation", "message", "program", "salt", "equations", "found", "seed", "number", "options")
        described = {name: getattr(self, name) for name in fields}
        return {**described, "values": [literal(x) for x in self.values], "snippet": self.snippet()}


def literal(x: Any) -> str:
    """Return Python code that makes an array, exactly."""
    x = np.asarray(x)
    name = f"ml_dtypes.{x.dtype.name}" if x.dtype.kind == "V" or x.dtype.name.startswith(("bfloat", "float8")) else (
        f"np.{x.dtype.name}" if x.dtype != np.bool_ else "np.bool_")  # fmt: skip
    if x.size == 0:
        return f"np.zeros({x.shape}, {name})"
    numbers = repr(wide(x).tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
    return f"np.array({numbers}, {name})"


def parsed(text: str, values: Sequence[Any], salt: int = 0) -> Case:
    """Parse a program and return it as a case.

    Raises:
        JaxprSyntaxError: the text is not a program.
        TypeError: the program has constants, or the operands do not match its types.
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
    """Check a relation of a program that is given by its text.

    Args:
        text: the program, as a report shows it.
        values: the program's operands.
        relation: a name such as "jit" or "vmap of vjp".
        salt: the seed of tangents and batches.

    Returns:
        A message that says what is wrong, or None if the relation holds.

    Raises:
        JaxprSyntaxError: the text is not a program.
        TypeError: the operands do not match the program's types.
        KeyError: there is no such relation.
        NotApplicable: the relation does not apply to the program.
    """
    failure = ask(parsed(text, values, salt), relation)
    return None if failure is None else failure[0]
