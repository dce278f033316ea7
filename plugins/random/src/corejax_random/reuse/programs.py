"""Detection of keys that a program uses twice, by a walk over its equations.

`check_key_reuse` walks over a traced function, and the setting `debug_key_reuse` over each program that is called. The
walk visits the body of a loop twice, with the keys of each step. A key is used by a conditional if any branch uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import corejax
from corejax.extend import Array, ClosedJaxpr, Jaxpr, JaxprEqn, Tracer, host_value
from corejax.extend.messages import api_boundary, describe_source
from corejax.extend.programs import subjaxprs
from corejax_random.generators.table import is_key_dtype
from corejax_random.reuse.keys import Keys, Ledger, any_of, fresh, is_used
from corejax_random.reuse.moves import keys_of_results

Env = dict[Any, Any]  # variables -> their keys, or their values


@api_boundary
def check_key_reuse(fun: Callable[..., Any], /, *args: Any) -> None:
    """Check that a function uses no key twice. The function is traced, not run.

    Args:
        fun: function of arrays.
        *args: arguments of the function.

    Raises:
        KeyReuseError: if the function uses a key twice. The message has the lines of both uses.
    """
    check_key_reuse_jaxpr(corejax.make_jaxpr(fun)(*args))


def check_key_reuse_jaxpr(program: ClosedJaxpr | Jaxpr) -> None:
    """Check that a program uses no key twice.

    Args:
        program: the program.

    Raises:
        KeyReuseError: if the program uses a key twice.
    """
    ledger = Ledger()
    jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
    try:
        Walk(ledger).program(program, [new_keys(v) for v in jaxpr.invars])
    finally:
        ledger.roll_back()


def new_keys(atom: Any) -> Keys | None:
    """Return new keys for a variable, or None if it has no keys."""
    return fresh(atom.aval.shape) if is_key_dtype(atom.aval.dtype) else None


def with_keys(program: ClosedJaxpr | Jaxpr) -> list[JaxprEqn]:
    """Return the equations of a program that involve keys."""
    jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
    eqns = jaxpr.memo.get("equations_with_keys")
    if eqns is None:
        eqns = jaxpr.memo["equations_with_keys"] = [eqn for eqn in jaxpr.eqns if _has_keys(eqn)]
    return eqns


def _has_keys(eqn: JaxprEqn) -> bool:
    return any(is_key_dtype(v.aval.dtype) for v in (*eqn.invars, *eqn.outvars)) or any(
        with_keys(inner) for inner in subjaxprs(eqn.params)
    )


class Walk:
    """A walk over programs.

    Args:
        ledger: record of the uses.
        keys_of: returns the keys of an array that is a constant of a program.
        where: suffix of the lines of uses, which names the call of the program.
    """

    def __init__(self, ledger: Ledger, keys_of: Callable[[Array], Keys] | None = None, where: str = "") -> None:
        self.ledger = ledger
        self.keys_of = keys_of or (lambda array: fresh(array.shape))
        self.where = where
        self.chosen: dict[Any, dict[Any, Any]] = {}

    def program(self, program: ClosedJaxpr | Jaxpr, args: Sequence[Keys | None]) -> list[Keys | None]:
        """Return the keys of a program's results.

        Args:
            program: the program.
            args: keys of its arguments.

        Raises:
            KeyReuseError: if a key is used twice.
        """
        jaxpr, consts = (program.jaxpr, program.consts) if isinstance(program, ClosedJaxpr) else (program, None)
        env: Env = dict(zip(jaxpr.invars, args, strict=True))
        values: Env = {}
        for v, const in zip(jaxpr.constvars, jaxpr.constvars if consts is None else consts, strict=True):
            if is_key_dtype(v.aval.dtype):
                env[v] = self.keys_of(const) if isinstance(const, Array) else new_keys(v)
            elif consts is not None and not isinstance(const, Tracer):
                values[v] = const
        for eqn in with_keys(jaxpr):
            operands = [self.read(env, atom) for atom in eqn.invars]
            env.update(zip(eqn.outvars, self.equation(eqn, operands, values, _makers(jaxpr)), strict=True))
        return [self.read(env, atom) for atom in jaxpr.outvars]

    def read(self, env: Env, atom: Any) -> Keys | None:
        """Return the keys of a variable or literal, or None if it has no keys."""
        if not is_key_dtype(atom.aval.dtype):
            return None
        if hasattr(atom, "val"):
            return self.keys_of(atom.val) if isinstance(atom.val, Array) else new_keys(atom)
        if atom not in env:
            env[atom] = new_keys(atom)
        known: Keys | None = env[atom]
        return known

    def place(self, eqn: JaxprEqn) -> str:
        """Return the user's line of an equation, with the call of its program."""
        return describe_source(eqn.source_info) + self.where

    def use(self, eqn: JaxprEqn, keys: Keys, i: int) -> None:
        """Record a use of the keys of operand `i`."""
        self.ledger.use(keys, f"{eqn.primitive.name!r} of {eqn.invars[i].aval.str_short()}", self.place(eqn))

    def equation(
        self, eqn: JaxprEqn, keys: list[Keys | None], values: Env, makers: dict[Any, JaxprEqn]
    ) -> Sequence[Keys | None]:
        """Return the keys of an equation's results.

        Args:
            eqn: the equation.
            keys: keys of its operands.
            values: known values of variables.
            makers: equations that compute the other variables.
        """
        name = eqn.primitive.name
        if name == "cond":
            return self.branches(eqn, eqn.params["branches"], keys[1:])
        if name == "scan":
            return self.scan(eqn, keys)
        if name == "while":
            return self.loop(eqn, keys)
        if name == "remat2" and eqn.params["differentiated"]:  # recomputation is not a second use
            return [new_keys(v) for v in eqn.outvars]
        programs = list(subjaxprs(eqn.params))
        if programs:
            return self.call(eqn, programs, keys)
        known = [None if k is not None else _value(atom, values) for k, atom in zip(keys, eqn.invars, strict=True)]
        same = (
            name,
            tuple(_identity(a, k, makers) for a, k in zip(eqn.invars, keys, strict=True)),
            tuple(eqn.params.items()),
        )
        return keys_of_results(
            eqn.primitive,
            eqn.params,
            keys,
            known,
            [v.aval for v in eqn.outvars],
            lambda k, i: self.use(eqn, k, i),
            lambda: self.chosen.setdefault(same, {}),
        )

    def call(self, eqn: JaxprEqn, programs: list[Any], keys: list[Keys | None]) -> list[Keys | None]:
        """Return the keys of a call's results.

        If one program takes the operands as they are, the walk continues in it. Otherwise all keys of an operand count
        as used if a program uses any key of the corresponding argument.
        """
        if len(programs) == 1 and [a.shape for a in programs[0].in_avals] == [v.aval.shape for v in eqn.invars]:
            return self.program(programs[0], keys)
        for program in programs:
            inner = [fresh(a.shape) if is_key_dtype(a.dtype) else None for a in program.in_avals]
            self.program(program, inner)
            for i, (k, operand) in enumerate(zip(inner, keys, strict=False)):
                if k is not None and operand is not None and is_used(k):
                    self.use(eqn, operand, i)
        return [new_keys(v) for v in eqn.outvars]

    def branches(self, eqn: JaxprEqn, programs: Sequence[Any], keys: list[Keys | None]) -> list[Keys | None]:
        """Return the keys of a conditional's results, which may come from any branch; uses of all branches count."""
        start = len(self.ledger.entries)
        used: list[Any] = []
        results = []
        for program in programs:
            results.append(self.program(program, keys))
            used += self.ledger.roll_back(start)
        self.ledger.restore(used)
        return [
            None if column[0] is None else any_of([x for x in column if x is not None], v.aval.shape)
            for column, v in zip(zip(*results, strict=True), eqn.outvars, strict=True)
        ]

    def scan(self, eqn: JaxprEqn, keys: list[Keys | None]) -> list[Keys | None]:
        """Return the keys of a scan's results, after two steps; constants stay the same, carries come from the last."""
        params = eqn.params
        body, length = params["jaxpr"], params["length"]
        first = params["num_consts"]
        second = first + params["num_carry"]
        consts, carry, xs = keys[:first], keys[first:second], keys[second:]
        steps = min(length, 2) if isinstance(length, int) else 2
        outs = None
        for i in range(steps):
            outs = self.step(eqn, i, body, [*consts, *carry, *(_element(x, i) for x in xs)])
            carry = outs[: len(carry)]
        if steps == 2:
            for x in xs:
                if x is not None and x.distinct:
                    rest = x._replace(ids=x.ids[2:])
                    self.ledger.use_like(x._replace(ids=x.ids[1]), rest)
        stacked = [new_keys(v) for v in eqn.outvars[len(carry) :]]
        for place, var in enumerate(body.jaxpr.outvars[len(carry) :]):
            if var in body.jaxpr.invars[second:]:
                stacked[place] = xs[body.jaxpr.invars[second:].index(var)]
        for k, last in zip(stacked, outs[len(carry) :] if outs is not None else (), strict=False):
            if k is not None and last is not None and is_used(last) and not is_used(k):
                self.ledger.use(k, f"{eqn.primitive.name!r}", self.place(eqn))
        return [*carry, *stacked]

    def loop(self, eqn: JaxprEqn, keys: list[Keys | None]) -> list[Keys | None]:
        """Return the keys of a while loop's results, after two steps."""
        params = eqn.params
        first = params["cond_nconsts"]
        second = first + params["body_nconsts"]
        tested, consts, carry = keys[:first], keys[first:second], keys[second:]
        for i in range(2):
            self.step(eqn, i, params["cond_jaxpr"], [*tested, *carry])
            carry = self.step(eqn, i, params["body_jaxpr"], [*consts, *carry])
        return carry

    def step(self, eqn: JaxprEqn, i: int, body: Any, keys: list[Keys | None]) -> list[Keys | None]:
        """Return the keys of the results of step `i` of a loop."""
        where = self.where
        try:
            if i:
                self.where = (
                    f"{where}, in a later step of the {eqn.primitive.name} at {describe_source(eqn.source_info)}"
                )
            return self.program(body, keys)
        finally:
            self.where = where


def _element(x: Keys | None, i: int) -> Keys | None:
    """Return an element of an array of keys along its first axis."""
    return x._replace(ids=x.ids[i]) if x is not None and x.distinct else x


def _value(atom: Any, values: Env) -> Any:
    """Return the value of an operand as a NumPy array, or None if it is not known."""
    value = atom.val if hasattr(atom, "val") else values.get(atom)
    return None if value is None else np.asarray(host_value(value), atom.aval.dtype)


def _identity(atom: Any, keys: Keys | None, makers: dict[Any, JaxprEqn], depth: int = 8) -> Any:
    """Return a hashable identity of an operand, equal for operands that are computed in the same way."""
    if keys is not None:
        return keys.ids.tobytes()
    if hasattr(atom, "val"):
        return ("literal", repr(atom))
    eqn = makers.get(atom)
    if eqn is None or eqn.primitive.effects or not depth:
        return atom
    operands = tuple(_identity(x, None, makers, depth - 1) for x in eqn.invars)
    return (eqn.primitive.name, eqn.outvars.index(atom), tuple(eqn.params.items()), operands)


def _makers(jaxpr: Jaxpr) -> dict[Any, JaxprEqn]:
    """Return the equation that computes each variable."""
    makers = jaxpr.memo.get("makers")
    if makers is None:
        makers = jaxpr.memo["makers"] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    return makers
