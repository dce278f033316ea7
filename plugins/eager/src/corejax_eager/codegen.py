"""Generation of Python functions from programs: one line of Python for each equation.

Evaluation goes from equation to equation, looks up each rule, and compares each result with its type. For small arrays
that takes as long as NumPy's functions. A generated function looks up the rules once. It needs no check for a ufunc,
because the types of the operands determine the result's type, nor for `HostCode`, which promises the types of its
results. It checks the results of all other rules. If a generated function raises, the program is evaluated again, so
that the error names the equation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from corejax.extend import Array, Jaxpr, JaxprEqn, Primitive, ShapedArray, Var, dtypes, tree
from corejax.extend.devices import is_spread
from corejax.extend.messages import note_origin, observe
from corejax.extend.speed import (
    LARGE,
    LOCAL_REFCOUNT,
    HostCode,
    as_promised,
    evaluation,
    host_literal,
    in_own_memory,
    last_uses,
)
from corejax_eager import large
from corejax_eager.cache import clearings

RUNS = 3  # number of the run of a program or an operation at which a function is generated
_MAX_EQNS = 256
# Kinds of NumPy's own dtypes. Narrower integers are held in these and need a conversion after each operation.
_KNOWN_KINDS = frozenset("biufc")

# For NumPy scalars, Python's operators take a fifth of the ufunc's time.
_OPERATORS = {
    np.add: "{} + {}",
    np.subtract: "{} - {}",
    np.multiply: "{} * {}",
    np.divide: "{} / {}",
    np.negative: "-{}",
}
_OPERATORS_TAKE = frozenset({np.dtype(np.float32), np.dtype(np.float64)})

_CHECKED = """\
    if type({out}) is not ndarray or {out}.dtype is not {type}.dtype or {out}.shape != {type}.shape:
        {out} = as_promised({eqn}.primitive, {out}, {type})
    elif not (sole := getrefcount({out}) <= LOCAL_REFCOUNT) or {out}.base is not None:
        {out} = in_own_memory({out}, [{operands}], sole)
    {out}.setflags(False)"""


def host_of(array: Array) -> Any:
    """Return the NumPy array of an `Array`.

    Raises:
        ValueError: its parts are on several devices, so that the results belong there.
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
    "LOCAL_REFCOUNT": LOCAL_REFCOUNT,
    "results": evaluation.evaluate_equation,
}


def run_generated(jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    """Evaluate a program on NumPy arrays, by a generated function from the third run on.

    The result is that of `evaluation.run_program`.
    """
    # The memo has the version of the rules, the number of runs with these rules, and the generated function or None.
    version, runs, function = jaxpr.memo.get("generated", (None, 0, None))
    if version != clearings():
        version, runs, function = clearings(), 0, None
    if runs < RUNS:
        runs += 1
        if runs == RUNS and not observe.watched and _is_short(jaxpr):
            function = _CodeGenerator(jaxpr).generate_on_values()
        jaxpr.memo["generated"] = (version, runs, function)
    if function is not None:
        try:
            return function(*values)  # type: ignore[no-any-return]  # a list, as generated
        except Exception:  # evaluation raises the error again, for the right equation
            pass
    return run_by_equations(jaxpr, values)


def run_by_equations(jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    """Evaluate a program on NumPy arrays equation by equation; large operations are compiled if that is faster."""
    return evaluation.run_program(jaxpr, values, large.run_equation)


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
        structure: the pytree of the results.
        ufunc: a ufunc to call in place of the program's rules, if it returns results of these types.

    Returns:
        The function, which raises `ValueError` if parts of an argument are on several devices; None for long
        programs, and for those with huge results or compiled operations.
    """
    if ufunc is not None:
        ufunc = as_ufunc(ufunc, [v.aval for v in jaxpr.invars][-ufunc.nin :], out_avals)
    if ufunc is None and not _is_short(jaxpr):
        return None
    return _CodeGenerator(jaxpr).generate_on_arrays(known, out_avals, structure, ufunc)


def _is_short(jaxpr: Jaxpr) -> bool:
    """Return whether a program has few equations, no huge result, no compiled operation and no effects."""
    has_large = any(v.aval.nbytes > LARGE for eqn in jaxpr.eqns for v in eqn.outvars)  # evaluation checks the memory
    has_large = has_large or any(map(large.is_compiled_equation, jaxpr.eqns))
    return not has_large and len(jaxpr.eqns) <= _MAX_EQNS and not jaxpr.effects


class _CodeGenerator:
    """The text of a function under construction, and the names in it.

    Attributes:
        space: the function's globals, by name.
        names: names of variables and literals.
        constants: values of the variables and literals that are known.
        numbers: variables that hold NumPy scalars; they become arrays of rank 0 when a rule needs arrays.
        fresh: variables with arrays that are still writeable.
        lines: the lines of the function's body.
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
                value.setflags(write=False)
                self.bind_constant("literal", atom, value)

    def bind_global(self, word: str, value: Any) -> str:
        """Bind a value to a fresh global name that begins with a word, and return the name."""
        name = f"{word}_{len(self.space)}"
        self.space[name] = value
        return name

    def bind_constant(self, word: str, atom: Any, value: Any) -> None:
        """Bind a variable or a literal with a known value to a global name."""
        self.names[atom] = self.bind_global(word, value)
        self.constants[atom] = value

    def new_local(self, v: Any) -> str:
        """Return a fresh local name for a variable."""
        name = self.names[v] = f"v{len(self.names)}"
        return name

    # -- whole functions -----------------------------------------------------------------------------------------

    def generate_on_values(self) -> Callable[..., list[Any]]:
        """Return the function of the constants and arguments, NumPy arrays, which returns a list of NumPy arrays.

        It raises `TypeError` if values have other types than the program's variables.
        """
        binders = [*self.jaxpr.constvars, *self.jaxpr.invars]
        for v in binders:
            name, aval = self.new_local(v), self.bind_global("type", v.aval)
            self.lines.append(f"    if {name}.dtype is not {aval}.dtype or {name}.shape != {aval}.shape:")
            self.lines.append(f"        raise TypeError({name!r})")
        arguments = [self.names[v] for v in binders]
        self.emit_equations()
        outs = [self.read_only_operand(v) for v in self.jaxpr.outvars]
        return self.compile(arguments, f"[{', '.join(outs)}]")  # type: ignore[no-any-return]  # generated code

    def generate_on_arrays(
        self, known: Sequence[Any], avals: Sequence[ShapedArray], structure: Any, ufunc: np.ufunc | None
    ) -> Callable[..., Any]:
        """Return the function of `Array`s, which returns `Array`s in a structure."""
        binders = [*self.jaxpr.constvars, *self.jaxpr.invars]
        for v, value in zip(binders, known, strict=False):
            self.bind_constant("known", v, value)
        operands = [self.new_local(v) for v in binders[len(known) :]]
        for name in operands:
            self.lines.append(f"    {name} = array_{name}._host")
            self.lines.append(f"    if {name} is None:\n        {name} = host_of(array_{name})")
        if ufunc is None:
            self.emit_equations()
        else:
            results = ", ".join([self.new_local(v) for v in self.jaxpr.outvars])
            self.lines.append(f"    {results} = {self.bind_global('ufunc', ufunc)}({', '.join(operands)})")
            self.numbers.update(v for v in self.jaxpr.outvars if not v.aval.shape)
        computed = {v for eqn in self.jaxpr.eqns for v in eqn.outvars}
        outs = []
        for atom, aval in zip(self.jaxpr.outvars, avals, strict=True):
            out = self.names[atom]
            if atom not in computed or atom in self.constants:
                out += ".copy()"  # each result has memory of its own, because it may be donated
            elif atom in self.numbers:
                out = f"asarray({out})"
            outs.append(f"Array({out}, {self.bind_global('type', aval)})")
        arguments = [f"array_{name}" for name in operands]
        return self.compile(arguments, self.result_text(outs, structure))  # type: ignore[no-any-return]  # generated

    def result_text(self, outs: list[str], structure: Any) -> str:
        """Return the text of the function's result."""
        marks = [object() for _ in outs]
        shape = tree.unflatten(structure, marks)
        if shape in marks:
            return outs[0]
        if type(shape) in (tuple, list) and list(shape) == marks:
            text = ", ".join(outs)
            return f"[{text}]" if type(shape) is list else f"({text},)" if outs else "()"
        return f"{self.bind_global('structure', structure)}.unflatten([{', '.join(outs)}])"

    def compile(self, arguments: Sequence[str], value: str) -> Any:
        """Compile the text to a Python function with these arguments and this result."""
        text = "\n".join([f"def program({', '.join(arguments)}):", *self.lines, f"    return {value}"])
        exec(compile(text, "<generated by corejax-eager>", "exec"), self.space)
        return self.space.pop("program")

    # -- operands ------------------------------------------------------------------------------------------------

    def array_operand(self, v: Any) -> str:
        """Return the name of an operand, which is converted to an array if it is a scalar."""
        name = self.names[v]
        if v in self.numbers:
            self.numbers.discard(v)
            self.fresh.add(v)
            self.lines.append(f"    {name} = asarray({name})")
        return name

    def read_only_operand(self, v: Any) -> str:
        """Return the name of an operand, which is made a read-only array."""
        name = self.array_operand(v)
        if v in self.fresh:
            self.fresh.discard(v)
            self.lines.append(f"    {name}.setflags(False)")
        return name

    def scalar_operand(self, v: Any) -> str | None:
        """Return the name of an operand as a NumPy scalar; None if the operand is an array."""
        if v in self.numbers:
            return self.names[v]
        value = self.constants.get(v)
        return None if value is None or value.shape else self.bind_global("number", value[()])

    # -- equations -----------------------------------------------------------------------------------------------

    def emit_equations(self) -> None:
        """Emit the lines of all equations; equations of known operands are evaluated now."""
        for eqn, dead in zip(self.jaxpr.eqns, last_uses(self.jaxpr), strict=True):
            rule = evaluation.host_rule(eqn.primitive)
            if rule is not None and not eqn.primitive.multiple_results and self.constants.keys() >= set(eqn.invars):
                [value] = evaluation.evaluate_equation(eqn, [self.constants[x] for x in eqn.invars])
                self.bind_constant("known", eqn.outvars[0], value)
                continue
            self.emit_equation(eqn, rule)
            if names := [self.names[v] for v in dead if v not in self.constants]:
                self.lines.append(f"    del {', '.join(names)}")

    def emit_equation(self, eqn: JaxprEqn, rule: Any) -> None:
        """Emit the lines of an equation, whose impl rule is `rule`."""
        avals, outs = [x.aval for x in eqn.invars], [v.aval for v in eqn.outvars]
        prepared = prepared_rule(eqn.primitive, avals, eqn.params, eqn.source_info)
        plain = rule if not eqn.params and not eqn.primitive.multiple_results else None
        ufunc = as_ufunc(prepared or plain, avals, outs) if len(outs) == 1 else None
        if ufunc is not None:
            self.emit_ufunc(eqn, ufunc)
        elif type(prepared) is HostCode:
            self.emit_host_code(eqn, prepared)
        else:
            self.emit_rule(eqn, rule, prepared)

    def emit_ufunc(self, eqn: JaxprEqn, ufunc: np.ufunc) -> None:
        """Emit a call of a ufunc."""
        [v] = eqn.outvars
        if not v.aval.shape:
            self.numbers.add(v)  # ufuncs return scalars for arrays of rank 0 as well
            operator = _OPERATORS.get(ufunc)
            if operator and all(x.aval.dtype in _OPERATORS_TAKE for x in (*eqn.invars, v)):
                numbers = [self.scalar_operand(x) for x in eqn.invars]
                if None not in numbers:
                    self.lines.append(f"    {self.new_local(v)} = {operator.format(*numbers)}")
                    return
        operands = [self.array_operand(x) for x in eqn.invars]
        call = self.bind_global(eqn.primitive.name.replace(".", "_"), ufunc)
        self.lines.append(f"    {self.new_local(v)} = {call}({', '.join(operands)})")
        if v not in self.numbers:
            self.fresh.add(v)

    def emit_host_code(self, eqn: JaxprEqn, code: HostCode) -> None:
        """Emit the lines of a `HostCode`."""
        operands = [self.array_operand(x) for x in eqn.invars]
        names = {name: self.bind_global(name, value) for name, value in code.names.items()}
        outs = [self.new_local(v) for v in eqn.outvars]
        out = f"[{', '.join(outs)}]" if eqn.primitive.multiple_results else outs[0]
        self.lines.extend(f"    {line}" for line in code.text.format(*operands, out=out, **names).splitlines())
        (self.numbers if code.scalar else self.fresh).update(eqn.outvars)

    def emit_rule(self, eqn: JaxprEqn, rule: Any, prepared: Any) -> None:
        """Emit a call of the impl rule, and a check of each result."""
        operands = [self.read_only_operand(x) for x in eqn.invars]
        outs, eqn_name = [self.new_local(v) for v in eqn.outvars], self.bind_global("eqn", eqn)
        if rule is None:  # it takes `Array`s
            self.lines.append(f"    [{', '.join(outs)}] = results({eqn_name}, [{', '.join(operands)}])")
            return
        run = prepared or rule
        params = [f"**{self.bind_global('params', eqn.params)}"] if run is rule and eqn.params else []
        target = f"[{', '.join(outs)}]" if eqn.primitive.multiple_results else outs[0]
        self.lines.append(f"    {target} = {self.bind_global('rule', run)}({', '.join([*operands, *params])})")
        for out, v in zip(outs, eqn.outvars, strict=True):
            names = {"operands": ", ".join(operands), "eqn": eqn_name, "type": self.bind_global("type", v.aval)}
            self.lines.append(_CHECKED.format(out=out, **names))


def prepared_rule(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], source: Any = None
) -> Any:
    """Return the impl rule specialised to types of operands and params, if its author provides that (`prepared=`)."""
    prepare = large.flags_of(primitive).prepare
    if prepare is None:
        return None
    try:
        return prepare(avals, **params)
    except Exception as error:
        note_origin(error, primitive, f"`prepared` of the impl rule of primitive {primitive.name!r}", source)
        raise


def as_ufunc(rule: Any, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> np.ufunc | None:
    """Return a rule if it is a ufunc that returns results of the types `outs`, else None.

    For results of rank 0 the ufunc returns NumPy scalars.

    Args:
        rule: an impl rule, or its prepared form.
        avals: types of the operands.
        outs: types of the results.
    """
    if type(rule) is not np.ufunc or (len(avals), len(outs)) != (rule.nin, rule.nout):
        return None
    if not all(aval.dtype.kind in _KNOWN_KINDS or dtypes.is_float(aval.dtype) for aval in (*avals, *outs)):
        return None
    try:
        out_dtypes = rule.resolve_dtypes((*(aval.dtype for aval in avals), *(None,) * rule.nout))[rule.nin :]
        shape = np.broadcast_shapes(*(aval.shape for aval in avals))
    except (TypeError, ValueError, RuntimeError):  # RuntimeError: more axes than NumPy supports
        return None
    is_same = all(dtype == out.dtype and shape == out.shape for dtype, out in zip(out_dtypes, outs, strict=True))
    return rule if is_same else None
