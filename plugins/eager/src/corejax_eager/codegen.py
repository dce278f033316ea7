"""Python functions generated from programs: a line for each equation.

Evaluation goes from equation to equation, looks up each rule, and compares each result with its type. That takes as
long as NumPy's functions take for small arrays. The type of a ufunc's result is known before it runs, from the types of
its operands, and `HostCode` promises the type of its results; the results of other rules are checked here, too. If a
function raises, the program is evaluated again, which says where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from corejax.extend import Array, Jaxpr, JaxprEqn, Primitive, ShapedArray, Var, dtypes, tree
from corejax.extend.devices import is_spread
from corejax.extend.messages import note_origin, observe
from corejax.extend.speed import SOLE, HostCode, as_promised, evaluation, host_literal, in_own_memory
from corejax_eager import large
from corejax_eager.cache import clearings

RUNS = 3  # of a program or an operation, at the last of which a function is generated
_LONGEST = 256  # equations
_LARGEST = 4096  # elements of a result: what is larger is given up as soon as nothing reads it any more
# NumPy's own; integers of fewer bits are held in them, and have to be made what was promised.
_KNOWN_KINDS = frozenset("biufc")

# Of NumPy's scalars these are Python's operators, which take a fifth of the ufunc's time.
_OPERATORS = {
    np.add: "{} + {}",
    np.subtract: "{} - {}",
    np.multiply: "{} * {}",
    np.divide: "{} / {}",
    np.negative: "-{}",
}
_OPERATORS_TAKE = frozenset({np.dtype(np.float32), np.dtype(np.float64)})

_CHECKED = """\
    out = {call}
    {given}if type(out) is not ndarray or out.dtype is not {type}.dtype or out.shape != {type}.shape:
        out = as_promised({eqn}.primitive, out, {type})
    elif out.base is not None or getrefcount(out) > SOLE:
        out = in_own_memory(out, [{operands}], getrefcount(out) <= SOLE)
    out.setflags(False)
    {name} = out"""


def host_of(array: Array) -> Any:
    """Return the NumPy array of an `Array`.

    Raises:
        ValueError: its parts are on several devices, where results are to be.
    """
    if is_spread(array):
        raise ValueError("on several devices")
    return array._fetch()


_COMMON = {
    "Array": Array,
    "ndarray": np.ndarray,
    "asarray": np.asarray,
    "as_promised": as_promised,
    "in_own_memory": in_own_memory,
    "getrefcount": getrefcount,
    "host_of": host_of,
    "unflatten": tree.unflatten,
    "SOLE": SOLE,
    "results": evaluation.evaluate_equation,
}


def run_generated(jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    """Evaluate a program on NumPy arrays; as `evaluation.run_program`."""
    # With which version of the rules the runs were counted, how many there were, and the function, if there is one.
    version, runs, function = jaxpr.memo.get("generated", (None, 0, None))
    if version != clearings():
        version, runs, function = clearings(), 0, None
    if runs < RUNS:
        runs += 1
        if runs == RUNS and not observe.watched:
            function = generate(jaxpr)
        jaxpr.memo["generated"] = (version, runs, function)
    if function is not None:
        try:
            return function(*values)  # type: ignore[no-any-return]
        except Exception:  # evaluation says where
            pass
    return run_by_equations(jaxpr, values)


def run_by_equations(jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    """Evaluate a program on NumPy arrays equation by equation; large ones are compiled if that is quicker."""
    return evaluation.run_program(jaxpr, values, large.run_equation)


def generate(jaxpr: Jaxpr) -> Callable[..., list[Any]] | None:
    """Generate a function of a program's constants and arguments, NumPy arrays, with the impl rules in force.

    Returns:
        The function, which raises `TypeError` if values are of other types than the program's variables; None for
        programs that are long or large.
    """
    return _CodeGenerator(jaxpr).on_values() if _is_short(jaxpr) else None


def generate_on_arrays(
    jaxpr: Jaxpr,
    known: Sequence[Any],
    out_avals: Sequence[ShapedArray],
    structure: Any,
    ufunc: np.ufunc | None = None,
) -> Callable[..., Any] | None:
    """Generate a function of `Array`s, for eager calls.

    Args:
        jaxpr: the program.
        known: values of the constants and first arguments, NumPy arrays; the function takes the other arguments.
        out_avals: types of the results.
        structure: the pytree of the results; None for one array.
        ufunc: what the function calls in place of the program's rules, if it gives results of these types.

    Returns:
        The function, which raises `ValueError` if parts of an argument are on several devices; None as `generate`.
    """
    if ufunc is not None:
        ufunc = as_ufunc(ufunc, [v.aval for v in jaxpr.invars][-ufunc.nin :], out_avals)
    if ufunc is None and not _is_short(jaxpr):
        return None
    return _CodeGenerator(jaxpr).on_arrays(known, out_avals, structure, ufunc)


def _is_short(jaxpr: Jaxpr) -> bool:
    many = any(v.aval.size > _LARGEST for eqn in jaxpr.eqns for v in eqn.outvars)
    many = many or any(map(large.is_compiled_equation, jaxpr.eqns))
    return not many and len(jaxpr.eqns) <= _LONGEST and not jaxpr.effects


class _CodeGenerator:
    """The text of a function and the names in it.

    Attributes:
        names: of variables and literals.
        constants: values of those that are known.
        numbers: variables that are NumPy scalars where they are written: arrays of rank 0, once they have to be.
        fresh: variables whose arrays can be written to still.
    """

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.jaxpr = jaxpr
        self.space: dict[str, Any] = dict(_COMMON)
        self.names: dict[Any, str] = {}
        self.constants: dict[Any, Any] = {}
        self.numbers: set[Any] = set()
        self.fresh: set[Any] = set()
        self.lines: list[str] = []
        for atom in (*(x for eqn in jaxpr.eqns for x in eqn.invars), *jaxpr.outvars):
            if type(atom) is not Var and atom not in self.names:
                value = host_literal(atom)
                value.setflags(False)
                self.bind_constant("literal", atom, value)

    def named(self, word: str, value: Any) -> str:
        """A name for a value."""
        name = f"{word}_{len(self.space)}"
        self.space[name] = value
        return name

    def bind_constant(self, word: str, atom: Any, value: Any) -> None:
        """Give a variable or a literal the name of its value."""
        self.names[atom] = self.named(word, value)
        self.constants[atom] = value

    def new(self, v: Any) -> str:
        """A name for a variable."""
        name = self.names[v] = f"v{len(self.names)}"
        return name

    # -- the whole -----------------------------------------------------------------------------------------------

    def on_values(self) -> Callable[..., list[Any]]:
        """The function of arrays of NumPy's, which gives a list of these."""
        binders = [*self.jaxpr.constvars, *self.jaxpr.invars]
        for v in binders:
            name, aval = self.new(v), self.named("type", v.aval)
            self.lines.append(f"    if {name}.dtype is not {aval}.dtype or {name}.shape != {aval}.shape:")
            self.lines.append(f"        raise TypeError({name!r})")
        arguments = [self.names[v] for v in binders]
        self.steps()
        outs = [self.sealed(v) for v in self.jaxpr.outvars]
        return self.compiled(arguments, f"[{', '.join(outs)}]")  # type: ignore[no-any-return]

    def on_arrays(
        self, known: Sequence[Any], avals: Sequence[ShapedArray], structure: Any, ufunc: np.ufunc | None
    ) -> Callable[..., Any]:
        """The function of `Array`s, which gives what is to be returned."""
        binders = [*self.jaxpr.constvars, *self.jaxpr.invars]
        for v, value in zip(binders, known, strict=False):
            self.bind_constant("known", v, value)
        arguments = [self.argument(self.new(v)) for v in binders[len(known) :]]
        if ufunc is None:
            self.steps()
        else:
            given = ", ".join(self.names[v] for v in binders[len(known) :])
            results = ", ".join([self.new(v) for v in self.jaxpr.outvars])
            self.lines.append(f"    {results} = {self.named('ufunc', ufunc)}({given})")
            self.numbers.update(v for v in self.jaxpr.outvars if not v.aval.shape)
        made = {v for eqn in self.jaxpr.eqns for v in eqn.outvars}
        outs = []
        for atom, aval in zip(self.jaxpr.outvars, avals, strict=True):
            out = self.names[atom]
            if atom not in made or atom in self.constants:
                out += ".copy()"  # each array has memory of its own: it may be donated
            elif atom in self.numbers:
                out = f"asarray({out})"
            outs.append(f"Array({out}, {self.named('type', aval)})")
        return self.compiled(arguments, self.put_together(outs, structure))  # type: ignore[no-any-return]

    def argument(self, name: str) -> str:
        """The name of an argument, an `Array`, whose value gets a name of its own."""
        argument = f"array_{name}"
        self.lines.append(f"    {name} = {argument}._host")
        self.lines.append(f"    if {name} is None:\n        {name} = host_of({argument})")
        return argument

    def put_together(self, outs: list[str], structure: Any) -> str:
        """The text of what is returned."""
        if structure is None:
            return outs[0]
        marks = [object() for _ in outs]
        shape = tree.unflatten(structure, marks)
        if type(shape) in (tuple, list) and list(shape) == marks:
            text = ", ".join(outs)
            return f"[{text}]" if type(shape) is list else f"({text},)" if outs else "()"
        return f"unflatten({self.named('structure', structure)}, [{', '.join(outs)}])"

    def compiled(self, arguments: Sequence[str], value: str) -> Any:
        """The function."""
        text = "\n".join([f"def program({', '.join(arguments)}):", *self.lines, f"    return {value}"])
        exec(compile(text, "<generated by corejax-eager>", "exec"), self.space)
        return self.space.pop("program")

    # -- operands ------------------------------------------------------------------------------------------------

    def array(self, v: Any) -> str:
        """The name of an operand, which is an array from here on."""
        name = self.names[v]
        if v in self.numbers:
            self.numbers.discard(v)
            self.fresh.add(v)
            self.lines.append(f"    {name} = asarray({name})")
        return name

    def sealed(self, v: Any) -> str:
        """The name of an operand, an array that is read-only from here on."""
        name = self.array(v)
        if v in self.fresh:
            self.fresh.discard(v)
            self.lines.append(f"    {name}.setflags(False)")
        return name

    def number(self, v: Any) -> str | None:
        """The name of an operand that is a NumPy scalar; None where it is an array."""
        if v in self.numbers:
            return self.names[v]
        value = self.constants.get(v)
        return None if value is None or value.shape else self.named("number", value[()])

    # -- equations -----------------------------------------------------------------------------------------------

    def steps(self) -> None:
        """The lines of all equations, but of those that are known."""
        for eqn in self.jaxpr.eqns:
            rule = evaluation.host_rule(eqn.primitive)
            if rule is not None and not eqn.primitive.multiple_results and self.constants.keys() >= set(eqn.invars):
                [value] = evaluation.evaluate_equation(eqn, [self.constants[x] for x in eqn.invars])
                self.bind_constant("known", eqn.outvars[0], value)
                continue
            avals, outs = [x.aval for x in eqn.invars], [v.aval for v in eqn.outvars]
            prepared = prepared_rule(eqn.primitive, avals, eqn.params, eqn.source_info)
            plain = rule if not eqn.params and not eqn.primitive.multiple_results else None
            ufunc = as_ufunc(prepared or plain, avals, outs) if len(outs) == 1 else None
            if ufunc is not None:
                self.by_ufunc(eqn, ufunc)
            elif type(prepared) is HostCode:
                self.by_code(eqn, prepared)
            else:
                self.by_rule(eqn, rule, prepared)

    def by_ufunc(self, eqn: JaxprEqn, ufunc: np.ufunc) -> None:
        """Emit a call of a ufunc."""
        [v] = eqn.outvars
        if not v.aval.shape:
            self.numbers.add(v)  # ufuncs make them of arrays of rank 0, too
            operator = _OPERATORS.get(ufunc)
            if operator and all(x.aval.dtype in _OPERATORS_TAKE for x in (*eqn.invars, v)):
                numbers = [self.number(x) for x in eqn.invars]
                if None not in numbers:
                    self.lines.append(f"    {self.new(v)} = {operator.format(*numbers)}")
                    return
        operands = [self.array(x) for x in eqn.invars]
        call = self.named(eqn.primitive.name.replace(".", "_"), ufunc)
        self.lines.append(f"    {self.new(v)} = {call}({', '.join(operands)})")
        if v not in self.numbers:
            self.fresh.add(v)

    def by_code(self, eqn: JaxprEqn, code: HostCode) -> None:
        """Emit the lines of a `HostCode`."""
        operands = [self.array(x) for x in eqn.invars]
        names = {name: self.named(name, value) for name, value in code.names.items()}
        outs = [self.new(v) for v in eqn.outvars]
        out = f"[{', '.join(outs)}]" if eqn.primitive.multiple_results else outs[0]
        self.lines.extend(f"    {line}" for line in code.text.format(*operands, out=out, **names).splitlines())
        (self.numbers if code.scalar else self.fresh).update(eqn.outvars)

    def by_rule(self, eqn: JaxprEqn, rule: Any, prepared: Any) -> None:
        """Emit a call of the impl rule, whose result is checked."""
        operands = [self.sealed(x) for x in eqn.invars]
        joined, outs = ", ".join(operands), [self.new(v) for v in eqn.outvars]
        if rule is None or eqn.primitive.multiple_results:
            call = f"results({self.named('eqn', eqn)}, [{joined}])"
            self.lines.append(f"    [{', '.join(outs)}] = {call}")
            return
        run, [v] = prepared or rule, eqn.outvars
        params = [f"**{self.named('params', eqn.params)}"] if run is rule and eqn.params else []
        call = f"{self.named('rule', run)}({', '.join([*operands, *params])})"
        names = {"eqn": self.named("eqn", eqn), "type": self.named("type", v.aval), "name": outs[0], "given": ""}
        if not v.aval.shape:  # NumPy gives its own scalars there
            scalar = self.named("scalar", v.aval.dtype.type)
            names["given"] = f"if type(out) is {scalar}:\n        out = asarray(out)\n    el"
        self.lines.append(_CHECKED.format(call=call, operands=joined, **names))


def prepared_rule(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], source: Any = None
) -> Any:
    """What the impl rule is for types of operands and params, where its author says that (`prepared=`)."""
    prepare = large.flags_of(primitive).prepare
    if prepare is None:
        return None
    try:
        return prepare(avals, **params)
    except Exception as error:
        note_origin(error, primitive, f"`prepared` of the impl rule of primitive {primitive.name!r}", source)
        raise


def as_ufunc(rule: Any, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> np.ufunc | None:
    """Return a rule if it is a ufunc that gives results of the types `outs`, or None; of rank 0 it gives NumPy scalars.

    Args:
        rule: an impl rule, or what it is prepared to be.
        avals, outs: types of the operands and of the results.
    """
    if type(rule) is not np.ufunc or (len(avals), len(outs)) != (rule.nin, rule.nout):
        return None
    if not all(aval.dtype.kind in _KNOWN_KINDS or dtypes.is_float(aval.dtype) for aval in (*avals, *outs)):
        return None
    try:
        found = rule.resolve_dtypes((*(aval.dtype for aval in avals), *(None,) * rule.nout))[rule.nin :]
        shape = np.broadcast_shapes(*(aval.shape for aval in avals))
    except (TypeError, ValueError, RuntimeError):  # RuntimeError: more axes than it takes
        return None
    return (
        rule if all(dtype == out.dtype and shape == out.shape for dtype, out in zip(found, outs, strict=True)) else None
    )
