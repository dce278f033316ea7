"""Lowering of programs by a translation context: equation by equation, or as calls of private functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    MissingRuleError,
    Primitive,
    ShapedArray,
    Var,
    attribute_to_rule,
    bottom_trace,
    dtypes,
    host_value,
    set_current_trace,
    xla_translations,
)
from corejax.extend.messages import describe_source
from corejax.extend.programs import Literal
from corejax.extend.types import physical_rules
from corejax_xla_backend._lowering.chains import LONGEST_CHAIN, LONGEST_LOOP, links, longest_chain, read_repeatedly
from corejax_xla_backend._lowering.function import Function
from corejax_xla_backend._lowering.partitioned_calls import partition_equation, should_partition
from corejax_xla_backend._lowering.regions import TOKEN, Region
from corejax_xla_backend._lowering.results import results_of_rule
from corejax_xla_backend._lowering.stored import rule_of_parts
from corejax_xla_backend._lowering.types import (
    KNOWN_NAN,
    OWN,
    KnownValue,
    PackedValue,
    Value,
    flat_values,
    packed_values,
    tensor_type,
)
from corejax_xla_backend._parts import flat_avals, is_stored, stored_arrays

# Structural operations that repeat the elements of their first operand.
_REPEATING = frozenset({"broadcast_in_dim", "reshape"})
# Tags of primitives that constrain their own results over axes of type Explicit.
_CONSTRAINING = ("higher_order", "collective", "placing")
_NOT_INLINED = ' {mhlo.frontend_attributes = {inlineable = "false"}}'


class Inlining(Function):
    """Methods of `TranslationContext`."""

    __slots__ = ()

    def inline(self, closed: ClosedJaxpr, vals: Sequence[Value]) -> list[Value]:
        """Append a program's operations, and return its results."""
        consts = [self._const(c, v.aval) for c, v in zip(closed.consts, closed.jaxpr.constvars, strict=True)]
        return self.inline_jaxpr(closed.jaxpr, [*consts, *vals])

    def _const(self, const: Any, aval: ShapedArray) -> Value:
        parts = zip(stored_arrays([const]), aval.parts(), strict=True)
        return packed_values([aval], [self.constant(part, part_aval.dtype) for part, part_aval in parts])[0]

    def inline_elementwise(self, closed: ClosedJaxpr, vals: Sequence[Value]) -> list[Value]:
        """Append the body of an elementwise primitive, as `inline` does; `in_elementwise` is True meanwhile."""
        self.module.elementwise += 1
        try:
            return self.inline(closed, vals)
        finally:
            self.module.elementwise -= 1

    @property
    def in_elementwise(self) -> bool:
        """Whether the body of an elementwise primitive is being lowered."""
        return self.module.elementwise > 0

    def inline_jaxpr(self, jaxpr: Jaxpr, vals: Sequence[Value]) -> list[Value]:
        """Append an open program's operations; `vals` are its constants and arguments.

        Rules and locations are looked up once for each primitive, and each primitive and line, because programs repeat
        them. Three facts are tracked beside the values: which scalars are known while the program is lowered
        (`KnownValue`), which results the compiler can prove to be NaN (`_mark_nan`), and how many operations are
        computed in the loop that reads a value (`chains`).
        """
        env: dict[Any, Value] = dict(zip((*jaxpr.constvars, *jaxpr.invars), vals, strict=True))
        module, platform, scope = self.module, self.platform, self.scope
        outer_state = self.mark, scope, self.source
        rules: dict[Primitive, tuple[Any, int | None]] = {}
        # The fact that no value is of a subclass of `Value`; most programs need no other test of the kinds of values.
        plain = {Value}.issuperset(map(type, vals))
        scalars: dict[Var | Literal, Any] = {}
        marks: dict[Any, tuple[str, tuple[str, ...]]] = {}

        def read(atom: Any) -> Value:
            if type(atom) is Var:
                return env[atom]
            scalars[atom] = atom.aval.dtype.type(atom.val)
            return self.constant(atom.val, atom.aval.dtype)

        for eqn in jaxpr.eqns:
            primitive, invars, source = eqn.primitive, eqn.invars, eqn.source_info
            rule_and_links = rules.get(primitive)
            if rule_and_links is None:
                rule_and_links = rules[primitive] = _rule_and_links(eqn, platform)
            rule, length = rule_and_links
            place = (primitive, id(source[0]), source[1:]) if source is not None else primitive
            mark_and_scope = marks.get(place)
            if mark_and_scope is None or "name" in eqn.params:
                mark_and_scope = marks[place] = module.locations.of_equation(scope, eqn)
            (self.mark, self.scope), self.source = mark_and_scope, source
            operands = [env[v] if type(v) is Var else read(v) for v in invars]
            if rule is None or (not plain and PackedValue in map(type, operands)):
                rule = rule_of_parts(eqn) or _translation(eqn, platform)
            opaque, line, constant = module.opaque, len(self.lines), len(self._constants)
            try:
                out = rule(self, [v.aval for v in invars], operands, **eqn.params)
            except Exception as error:
                attribute_to_rule(error, primitive, source, "xla_translation")
                raise
            outs = results_of_rule(primitive, out, eqn.outvars)
            if module.opaque > opaque:
                outs = self._partition_if_possible(eqn, rule, operands, outs, (opaque, line, constant))
            if not plain and KnownValue in map(type, operands):
                outs = _known_results(eqn, operands, scalars, outs)
            elif scalars and not scalars.keys().isdisjoint(invars):
                _mark_nan(eqn, scalars, outs)
            if length is not None:
                outs[0].chain = length + longest_chain(operands)
            if outs and outs[0].chain > LONGEST_CHAIN and module.stores_values:
                outs = self._stored(jaxpr, eqn, outs)
            for v, x in zip(eqn.outvars, outs, strict=True):
                env[v] = x if v.aval.refinement is None else _constrained(self, eqn, v.aval, x)
            plain = plain and type(out) is Value
        self.mark, self.scope, self.source = outer_state
        return [read(v) for v in jaxpr.outvars]

    def _stored(self, jaxpr: Jaxpr, eqn: JaxprEqn, outs: Sequence[Value]) -> Sequence[Value]:
        """Return the results of an equation at the end of a long chain, stored if `chains` says so."""
        repeated = read_repeatedly(jaxpr, self.module.repeated).repeated
        all_are_stored = outs[0].chain > LONGEST_LOOP and outs[0].aval.shape
        if not all_are_stored and repeated.isdisjoint(eqn.outvars):
            return outs
        both = zip(eqn.outvars, outs, strict=True)
        return [self.materialized(x) if all_are_stored or v in repeated else x for v, x in both]

    def _partition_if_possible(
        self,
        eqn: JaxprEqn,
        rule: Callable[..., Any],
        operands: Sequence[Value],
        outs: Sequence[Value],
        state_before: tuple[int, int, int],
    ) -> Sequence[Value]:
        """Return the results of an equation with operations that XLA cannot partition.

        If rules say how to partition the equation, its operations are dropped, and a call that can be partitioned
        takes their place. `state_before` has the counts of opaque operations, lines and constants before the equation.
        """
        self.module.opaque, lines, constants = state_before
        if not should_partition(self, eqn):
            return outs
        del self.lines[lines:]
        for key in list(self._constants)[constants:]:
            del self._constants[key]
        return partition_equation(self, eqn, rule, operands)

    def call(self, closed: ClosedJaxpr, vals: Sequence[Value], name: str = "f") -> list[Value]:
        """Append a call of a program as a private function, which is written once for each program object."""
        known_nan = any(v.origins & KNOWN_NAN for v in vals)
        symbol, ordered, origins, chain = self._private_function(closed, name, known_nan=known_nan)
        more = ([self.token], [TOKEN]) if ordered else ([], [])
        outs = self.call_symbol(symbol, [*vals, *more[0]], [*closed.out_avals, *more[1]])
        if ordered:
            self.token = outs.pop()
        for out in outs:
            out.origins |= origins & KNOWN_NAN
            out.chain = chain and chain + longest_chain(vals)
        return outs

    def call_symbol(
        self, symbol: str, vals: Sequence[Value], out_avals: Sequence[ShapedArray], attrs: str = ""
    ) -> list[Value]:
        """Append a call of a function of the module by its symbol."""
        vals = self.behind_barriers(vals)
        number = self._counter[0] = self._counter[0] + 1
        names = ", ".join(v.name for v in vals)
        types = ", ".join(tensor_type(v.aval) for v in vals)
        bound, result_types, results = self.results(number, out_avals, self._origins(vals))
        self.lines.append(f"{bound}func.call @{symbol}({names}){attrs} : ({types}) -> ({result_types}){self.mark}")
        return results

    @staticmethod
    def results(number: int, avals: Sequence[ShapedArray], origins: int) -> tuple[str, str, list[Value]]:
        """Return the text that binds an operation's results, the text of their types, and their values."""
        flat = flat_avals(avals)
        types = ", ".join([tensor_type(a) for a in flat])
        if len(flat) == 1:
            values, bound = [Value(f"%{number}", flat[0], origins)], f"%{number} = "
        else:
            values = [Value(f"%{number}#{i}", a, origins) for i, a in enumerate(flat)]
            bound = f"%{number}:{len(flat)} = " if flat else ""
        return bound, types, packed_values(avals, values)

    def function(self, closed: ClosedJaxpr, name: str = "f") -> str:
        """Return the symbol of a private function for a program, which is written once for each program object.

        Raises:
            NotImplementedError: the program has ordered effects, so that only `call` can use it.
        """
        symbol, ordered, _, _ = self._private_function(closed, name)
        if ordered:
            raise NotImplementedError("ordered effects in a function that is an attribute of an operation")
        return symbol

    def _private_function(
        self, closed: ClosedJaxpr, name: str, *, known_nan: bool = False
    ) -> tuple[str, bool, int, int]:
        """Return the private function of a program; it is written once for each program, with the first call's scope.

        Args:
            closed: the program.
            name: the name that the function gets if it is not taken.
            known_nan: whether arguments depend on a constant NaN; such calls have a function of their own.

        Returns:
            The symbol of the function, whether the function has ordered effects, the origins of its results, and the
            longest chain that ends in one. With ordered effects the function takes the token as its last argument and
            returns it as its last result.
        """
        module = self.module
        key = (id(closed), module.manual, known_nan)
        entry = module.private.get(key)
        if entry is None:
            symbol = module.fresh_name(name)
            ctx = type(self)(module, scope=self.scope)
            # A call may pass one value as all arguments, so that they have one origin.
            origins = OWN | KNOWN_NAN if known_nan else OWN
            args = [Value(f"%arg{i}", aval, origins) for i, aval in enumerate(flat_avals(closed.in_avals))]
            ctx.token = before = module.new_token()
            outs = flat_values(ctx.inline(closed, packed_values(closed.in_avals, args)))
            ordered = ctx.token is not before
            for out in outs:
                origins |= out.origins
            chain = longest_chain(outs)
            entry = module.private[key] = (symbol, ordered, origins, chain, closed)
            more = ([before], [ctx.token]) if ordered else ([], [])
            module.add_function("private", symbol, [*args, *more[0]], ctx.lines, [*outs, *more[1]])
        return entry[:4]

    # -- origins of values ---------------------------------------------------------------------------

    def written(self, operand: Value, update: Value) -> Value:
        """Return an update in a form that an operation can safely write to a window of an operand.

        XLA on CPUs writes in place, in the loop that computes the update. If the operand or the result is reshaped, XLA
        misses that the update depends on the operand, and reads elements that it has just written:
        `x.at[1:].set(x[:-1])[:, None]`. Such an update is materialized first. An update of a single element needs no
        copy, because it is read completely before it is written.
        """
        shared = operand.origins & update.origins & ~KNOWN_NAN
        return self.materialized(update) if update.aval.size != 1 and shared else update

    def materialized(self, x: Value) -> Value:
        """Return a value that XLA stores before it is used, instead of fusing it into its consumer's loop.

        On CPUs only. XLA drops optimization barriers there before fusion, so that a call of an identity function, which
        is not inlined, does it at no cost.
        """
        if self.platform != "cpu":
            return x
        return self.call_symbol(self.module.identity(x.aval), [x], [x.aval], _NOT_INLINED)[0]

    def _origins(self, operands: Sequence[Value], regions: Sequence[str] = ()) -> int:
        """Return the origins of an operation's results; a region given as plain text may use all enclosing values."""
        origins = 0 if operands else OWN
        for x in operands:
            origins |= x.origins
        if regions:
            enclosing = (1 << self._origin_bits) - 1
            for region in regions:
                origins |= enclosing & region.origins if type(region) is Region else enclosing
        return origins


def _known_results(
    eqn: JaxprEqn, operands: Sequence[Value], scalars: dict[Var | Literal, Any], outs: Sequence[Value]
) -> Sequence[Value]:
    """Return an equation's results, as a `KnownValue` if the operands are known: an index that selects a branch."""
    vals = [scalars[v] if type(v) is Literal else x.known for v, x in zip(eqn.invars, operands, strict=True)]
    if not _is_scalar_function(eqn, vals):
        return outs
    return [KnownValue(outs[0], _evaluate(eqn, vals))]


def _mark_nan(eqn: JaxprEqn, scalars: dict[Var | Literal, Any], outs: Sequence[Value]) -> None:
    """Mark a result as a known NaN if the compiler can prove it: `log(-1)`, `zeros(8) / zeros(8)`.

    The compiler can also prove that a product with an infinity or a quotient by zero is NaN, whatever the other operand
    is computed from (`x * 0 / 0`), so that these are marked as well. `scalars` maps each literal, and each variable
    with equal elements that is computed from literals alone, to its element; the result's element is added.
    """
    name = eqn.primitive.name
    repeats = name in _REPEATING
    if not (repeats or "elementwise" in eqn.primitive.tags) or eqn.primitive.multiple_results or eqn.effects:
        return
    [out], vals = eqn.outvars, [scalars.get(atom) for atom in eqn.invars]
    inexact = dtypes.is_inexact(out.aval.dtype)
    if None not in vals:
        try:
            value = scalars[out] = vals[0] if repeats else _evaluate(eqn, vals)
        except FloatingPointError:  # `debug_nans` is on
            value = scalars[out] = np.nan
        except Exception:  # the primitive may have no impl rule, or none for scalars, and compiles all the same
            return
        nan = value != value
    elif inexact and name == "mul":
        nan = any(v is not None and abs(v) == np.inf for v in vals)
    else:
        nan = inexact and name == "div" and vals[1] == 0
    if inexact and nan:
        outs[0].origins |= KNOWN_NAN


def _is_scalar_function(eqn: JaxprEqn, vals: Sequence[Any]) -> bool:
    """Return whether an equation computes one scalar, without effects, from operands that are all known."""
    several = eqn.primitive.multiple_results
    return None not in vals and not (eqn.effects or several or eqn.outvars[0].aval.shape)


def _evaluate(eqn: JaxprEqn, vals: Sequence[Any]) -> Any:
    """Return the scalar that an equation computes from known operands."""
    with set_current_trace(bottom_trace()):
        return host_value(eqn.primitive.bind(*vals, **eqn.params))[()]


def _rule_and_links(eqn: JaxprEqn, platform: str) -> tuple[Callable[..., Any] | None, int | None]:
    """Return the translation rule of an equation's primitive and what it adds to a chain; None for a physical rule."""
    if eqn.primitive in physical_rules:
        return None, None
    return _translation(eqn, platform), links(eqn.primitive)


def _translation(eqn: JaxprEqn, platform: str) -> Callable[..., Any]:
    """Return the translation rule of an equation's primitive for a platform."""
    try:
        return xla_translations.lookup(eqn.primitive, platform)
    except MissingRuleError as error:
        # The error names the line that compiled the program; the note adds the line of the equation.
        error.add_note(f"The operation that needs a translation was traced at {describe_source(eqn.source_info)}.")
        raise


def _constrained(ctx: Any, eqn: JaxprEqn, aval: ShapedArray, x: Value) -> Value:
    """Constrain a result of an equation to the sharding in its type.

    A result needs no constraint if an operand has the same shape and sharding.
    """
    if ctx.module.manual is not None or not eqn.primitive.tags.isdisjoint(_CONSTRAINING):
        return x
    sharding = aval.explicit_sharding
    if sharding is None or is_stored(aval):
        return x
    if any((v.aval.shape, v.aval.explicit_sharding) == (aval.shape, sharding) for v in eqn.invars):
        return x
    text = ctx.sharding_text(sharding, aval.ndim, sharding.mesh.are_all_axes_explicit)
    constrained: Value = ctx.op("sdy.sharding_constraint", x, out=x.aval, attrs=f"sharding = #sdy.sharding{text}")
    return constrained
