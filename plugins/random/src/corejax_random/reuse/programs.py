"""`check_key_reuse`: whether a program uses a key twice, by a walk over its equations.

A key is used by what draws with it and by `split`; `fold_in` and `clone` make others. Equations that only move keys
give the same ones; parts of an array of keys are keys of their own, and the same part of the same array the same ones.
Arrays that keys are joined in, or selected from, are used with any of these, and each of these with the array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import corejax
from corejax.extend import ClosedJaxpr, Jaxpr, JaxprEqn, KeyReuseError, api_boundary, describe_source
from corejax_random.generators.table import is_key_dtype

_USES = {"random_bits", "random_split", "random_gamma"}
_MOVES = {
    "broadcast_in_dim", "convert_element_type", "copy", "optimization_barrier", "reshape", "rev", "squeeze", "stage",
    "stop_gradient", "transpose",
}  # fmt: skip
_PARTS = {"slice", "dynamic_slice", "gather"}
_JOINS = {"concatenate", "pad", "select_n", "stack"}


@api_boundary
def check_key_reuse(fun: Callable[..., Any], /, *args: Any) -> None:
    """Look for keys that a function would use twice; it is traced, and not run.

    Args:
        fun: a function of arrays.
        args: its arguments.

    Raises:
        KeyReuseError: it uses a key twice; with the line of the second use.
    """
    check_key_reuse_jaxpr(corejax.make_jaxpr(fun)(*args))


def check_key_reuse_jaxpr(program: ClosedJaxpr) -> None:
    """As `check_key_reuse`, of a program.

    Raises:
        KeyReuseError: it uses a key twice.
    """
    _Walk(program.jaxpr)


class _Part(NamedTuple):
    """What stands for a part of an array of keys: which array, and what took the part."""

    whole: Any
    primitive: str
    operands: tuple[Any, ...]
    params: tuple[Any, ...]


def _overlap(x: Any, y: Any) -> bool:
    """Whether two slices of one array have keys in common."""
    if not (isinstance(x, _Part) and isinstance(y, _Part)) or x.whole != y.whole:
        return False
    if x.primitive != "slice" or y.primitive != "slice":
        return False
    return all(set(a) & set(b) for a, b in zip(_ranges(x), _ranges(y), strict=True))


def _ranges(part: _Part) -> list[range]:
    """Along each axis the indices that a slice has."""
    params = dict(part.params)
    starts, limits = params["start_indices"], params["limit_indices"]
    return list(map(range, starts, limits, params["strides"] or (1,) * len(starts)))


class _Walk:
    """The keys of one program: what is the same key, and what has been used.

    Attributes:
        used: keys that have been.
    """

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.same: dict[Any, Any] = {}
        self.parents: dict[Any, list[Any]] = {}
        self.used: dict[Any, Any] = {}
        self.jaxpr = jaxpr
        for eqn in jaxpr.eqns:
            self.equation(eqn)

    def key_of(self, atom: Any) -> Any:
        """What stands for a variable's key."""
        return self.same.get(atom, atom)

    def use(self, eqn: JaxprEqn, atom: Any) -> None:
        key = self.key_of(atom)
        line = describe_source(eqn.source_info)
        for whole in self.wholes(key):
            if whole in self.used:
                raise KeyReuseError(
                    f"a key of type {atom.aval.str_short()} that was used at {self.used[whole]} is used again by "
                    f"{eqn.primitive.name!r} at {line}; corejax.random.split makes new ones of it"
                )
        for part, place in self.used.items():
            if key in self.wholes(part) or _overlap(key, part):
                raise KeyReuseError(
                    f"keys, one of which was used at {place}, are used again by {eqn.primitive.name!r} at {line}"
                )
        self.used[key] = line

    def wholes(self, key: Any) -> list[Any]:
        """The key, and the arrays that it is a part of."""
        found = [key]
        for each in found:  # grows on the way
            found += [whole for whole in self.parents.get(each, ()) if whole not in found]
        return found

    def is_used(self, atom: Any) -> bool:
        """Whether it is a key that has been used."""
        return any(whole in self.used for whole in self.wholes(self.key_of(atom)))

    def equation(self, eqn: JaxprEqn) -> None:
        name = eqn.primitive.name
        if name in _USES:
            self.use(eqn, eqn.invars[0])
        elif not any(is_key_dtype(v.aval.dtype) for v in eqn.invars):
            return
        elif name in _MOVES:
            self.same[eqn.outvars[0]] = self.key_of(eqn.invars[0])
        elif name in _PARTS:
            self.part(eqn)
        elif name in _JOINS:
            for atom in eqn.invars:
                if is_key_dtype(atom.aval.dtype):
                    self.parents.setdefault(self.key_of(atom), []).append(eqn.outvars[0])
        elif name == "cond":
            self.call(eqn, eqn.params["branches"], eqn.invars[1:])
        elif name == "scan":
            self.scan(eqn)
        elif name == "while":
            self.loop(eqn)
        else:
            programs = [p for p in eqn.params.values() if isinstance(p, ClosedJaxpr)]
            if len(programs) == 1 and len(programs[0].jaxpr.invars) == len(eqn.invars):
                self.call(eqn, programs, eqn.invars)

    def part(self, eqn: JaxprEqn) -> None:
        key = self.key_of(eqn.invars[0])
        found = _Part(key, eqn.primitive.name, tuple(eqn.invars[1:]), tuple(eqn.params.items()))
        self.parents[found] = [key, *(w for w in self.parents.get(found, ()) if w != key)]
        self.same[eqn.outvars[0]] = found

    def call(self, eqn: JaxprEqn, programs: Any, operands: Any) -> None:
        """What any of the programs uses is used."""
        walks = [_Walk(p.jaxpr) for p in programs]
        for i, operand in enumerate(operands):
            if any(walk.is_used(walk.jaxpr.invars[i]) for walk in walks):
                self.use(eqn, operand)

    def scan(self, eqn: JaxprEqn) -> None:
        """Constants of the body are used once in each step, and carried keys have to be new ones."""
        params = eqn.params
        body, consts, carried = params["jaxpr"], params["num_consts"], params["num_carry"]
        walk = _Walk(body.jaxpr)
        again = params["length"] != 1
        self.steps(
            eqn, walk, walk.jaxpr.invars[:consts] if again else [], walk.jaxpr.outvars[:carried] if again else []
        )
        for operand, var in zip(eqn.invars, walk.jaxpr.invars, strict=True):
            if walk.is_used(var):
                self.use(eqn, operand)

    def loop(self, eqn: JaxprEqn) -> None:
        """The same of a while loop, whose condition and body have constants of their own."""
        params = eqn.params
        body = _Walk(params["body_jaxpr"].jaxpr)
        test = _Walk(params["cond_jaxpr"].jaxpr)
        first, second = params["cond_nconsts"], params["body_nconsts"]
        self.steps(eqn, body, body.jaxpr.invars[:second], body.jaxpr.outvars)
        self.steps(eqn, test, test.jaxpr.invars, [])
        for operand, var in zip(eqn.invars[first:], body.jaxpr.invars, strict=True):
            if body.is_used(var):
                self.use(eqn, operand)

    @staticmethod
    def steps(eqn: JaxprEqn, walk: _Walk, constant: Any, carried: Any) -> None:
        line = describe_source(eqn.source_info)
        if any(walk.is_used(var) for var in constant):
            raise KeyReuseError(
                f"the {eqn.primitive.name} at {line} uses the same key in each step; fold_in the step's number"
            )
        if any(walk.is_used(var) for var in carried):
            raise KeyReuseError(
                f"the {eqn.primitive.name} at {line} hands a key on to its next step that the step has used"
            )
