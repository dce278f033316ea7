"""Primitives that call a program: `defcall` registers all their rules from one declaration.

    call : a -> b        given a program a -> b

The idea: transforming a call yields a call of the transformed program. Each function below is the rule of one kind. It
transforms the program (memoised, so that a program in many calls is transformed once) and binds the primitive with the
new program, or binds the program's equations in place if the declaration says `inline`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from corejax.arrays.cells import write_cells
from corejax.base.lists import merge_lists, partition_list, select_list, spread_list
from corejax.base.provenance import Provenance
from corejax.core.avals import Dims, Operands, Params, ShapedArray
from corejax.core.primitive import Primitive
from corejax.core.trace import set_current_trace
from corejax.interpreters.transposition import is_undef_primal
from corejax.ir.dce import dce_rules
from corejax.ir.jaxpr import ClosedJaxpr, JaxprEqn, Var
from corejax.programs.host_programs import eval_jaxpr_on_host
from corejax.programs.jaxpr_transforms import batch_jaxpr, dce_jaxpr, inline_closed, jvp_jaxpr, transpose_with_cells
from corejax.programs.partial_eval_jaxpr import partial_eval_jaxpr, without_forwarded
from corejax.programs.recomputation import Policy, Recomputed, find_recomputation, recompute_rules
from corejax.rules import (
    RuleFn,
    abstract_eval_rules,
    impl_rules,
    jvp_rules,
    partial_eval_jaxpr_rules,
    partial_eval_rules,
    transpose_rules,
    vmap_rules,
    xla_translations,
)

__corejax_registers_for_caller__ = True


@dataclass(frozen=True, slots=True)
class CallChange:
    """The call of another program by which a rule replaces a call.

    Attributes:
        kind: "jvp", "vmap" or "transpose"; "known" or "unknown" for a half of a partial evaluation; "dce"; or
            "recompute" for a call with inner values that a policy saves.
        program: the program that the new call calls.
        operands: for each operand of the new call, the position in the old call of that operand, or of the operand of
            which it is the tangent; None for residuals and cotangents.
    """

    kind: str
    program: ClosedJaxpr
    operands: Dims


@dataclass(frozen=True, slots=True)
class _Call:
    """A declaration: the arguments of `defcall`, and its place in the source."""

    primitive: Primitive
    param: str
    update: Callable[[CallChange, Params], Params] | None
    policy: Callable[[Params], Policy | None] | None
    inline: Collection[str]
    place: Provenance

    def program(self, params: Params) -> ClosedJaxpr:
        """Return the program that an equation calls."""
        program = params.get(self.param)
        if isinstance(program, ClosedJaxpr):
            return program
        if self.param in params:
            problem = f"it is of type {type(params[self.param]).__name__}"
        else:
            problem = f"there is no such parameter, only {', '.join(map(repr, params)) or 'none at all'}"
        raise TypeError(
            f"primitive {self.primitive.name!r}: its defcall, in {self.place}, declares that the parameter "
            f"{self.param!r} holds a program (a ClosedJaxpr): {problem}"
        )

    def params(self, kind: str, program: ClosedJaxpr, operands: Dims, params: Params) -> Params:
        """Return the parameters for the call of another program."""
        changed = {} if self.update is None else self.update(CallChange(kind, program, operands), params)
        return {**params, **changed, self.param: program}

    def apply(self, kind: str, program: ClosedJaxpr, operands: Dims, params: Params, values: Operands) -> list[Any]:
        """Call another program or bind its equations in place; skip a program without outputs and effects."""
        if not _runs(program):
            return []
        if kind in self.inline:
            return inline_closed(program, values)
        new = self.params(kind, program, operands, params)
        return self.primitive.bind(*values, **new)  # type: ignore[no-any-return]  # several results, so a list

    def split(self, params: Params, unknowns: Sequence[bool]) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], int]:
        """Apply `partial_eval_jaxpr` to the program, with the declaration's policy."""
        policy = None if self.policy is None else self.policy(params)
        return partial_eval_jaxpr(self.program(params), unknowns, policy=policy)


def _runs(program: ClosedJaxpr) -> bool:
    return bool(program.jaxpr.outvars) or bool(program.effects)


# -- the rule of each kind, of a declaration -------------------------------------------------------------------


def _impl(call: _Call, /, *operands: object, **params: object) -> list[Any]:
    return eval_jaxpr_on_host(call.program(params), operands)


def _abstract_eval(call: _Call, /, *avals: ShapedArray, **params: object) -> list[ShapedArray]:
    program = call.program(params)
    expected = program.in_avals
    if len(avals) != len(expected):
        raise TypeError(f"{_shown(call, params)} takes {len(expected)} operands, got {len(avals)}")
    for i, (got, want) in enumerate(zip(avals, expected, strict=True)):
        if got is not want and (got.shape != want.shape or got.dtype != want.dtype):
            types = f"has type {got.str_short()}, the program takes {want.str_short()}"
            raise TypeError(f"{_shown(call, params)}: operand {i} {types}")
    return program.out_avals


def _shown(call: _Call, params: Params) -> str:
    name = params.get("name")
    return call.primitive.name + (f" of {name!r}" if isinstance(name, str) else "")


def _jvp(call: _Call, primals: Operands, tangents: Operands, /, **params: object) -> Any:
    nonzeros = [t is not None for t in tangents]
    pushed, nonzeros_out = jvp_jaxpr(call.program(params), nonzeros)
    places = range(len(primals))
    values = [*primals, *select_list(nonzeros, tangents)]
    outs = call.apply("jvp", pushed, [*places, *select_list(nonzeros, places)], params, values)
    count = len(nonzeros_out)
    return outs[:count], spread_list(nonzeros_out, outs[count:])


def _vmap(call: _Call, axis_size: int, vals: Operands, dims: Dims, /, **params: object) -> Any:
    batched, dims_out = batch_jaxpr(call.program(params), axis_size, dims)
    return call.apply("vmap", batched, [*range(len(vals))], params, vals), dims_out


def _partial_eval(call: _Call, trace: Any, args: Sequence[Any], /, **params: object) -> list[Any]:
    """Call the known half, and record a call of the unknown half.

    Outputs of the known half that are its operands, such as weights saved for the backward pass, bypass the call, which
    might have to copy them.
    """
    if "unknown" in call.inline:
        with set_current_trace(trace):
            return inline_closed(call.program(params), args)
    unknowns = [trace.is_unknown(x) for x in args]
    known, unknown, unknowns_out, num_res = call.split(params, unknowns)
    now, later = partition_list(unknowns, args)
    computing, plan = without_forwarded(known)
    known_places, unknown_places = partition_list(unknowns, range(len(args)))  # positions of operands
    computed = call.apply("known", computing, known_places, params, now)
    outs = [now[i] if forwarded else computed[i] for forwarded, i in plan]
    residuals = outs[len(outs) - num_res :]
    recorded: list[Any] = []
    if _runs(unknown):
        new = call.params("unknown", unknown, [*[None] * num_res, *unknown_places], params)
        recorded = trace.record(call.primitive, [*residuals, *later], new)
    return merge_lists(unknowns_out, outs[: len(outs) - num_res], recorded)


def _partial_eval_jaxpr(call: _Call, unknowns: Sequence[bool], eqn: JaxprEqn) -> Any:
    """Split an equation into one for each half; residuals that are operands or results need no new variables."""
    params = eqn.params
    known, unknown, unknowns_out, num_res = call.split(params, unknowns)
    known_in, unknown_in = partition_list(unknowns, eqn.invars)
    known_places, unknown_places = partition_list(unknowns, range(len(unknowns)))
    known_out, unknown_out = partition_list(unknowns_out, eqn.outvars)
    smaller, plan = without_forwarded(known, len(known_out))
    bound = [*known_out, *(Var(a) for a in smaller.out_avals[len(known_out) :])]
    residuals = [known_in[i] if forwarded else bound[i] for forwarded, i in plan[len(known_out) :]]
    new = call.params("known", smaller, known_places, params)
    known_eqn = eqn.replace(invars=known_in, outvars=bound, params=new)
    new = call.params("unknown", unknown, [*[None] * num_res, *unknown_places], params)
    unknown_eqn = eqn.replace(invars=[*residuals, *unknown_in], outvars=unknown_out, params=new)
    return known_eqn if _runs(smaller) else None, unknown_eqn if _runs(unknown) else None, unknowns_out, residuals


def _transpose(call: _Call, cts: Operands, /, *operands: object, **params: object) -> list[Any]:
    linear = [is_undef_primal(x) for x in operands]
    pulled, nonzeros, cells = transpose_with_cells(call.program(params), linear, [ct is not None for ct in cts])
    residuals = [x for x in operands if not is_undef_primal(x)]
    nonzero_cts = [ct for ct in cts if ct is not None]
    places: list[int | None] = [i for i, x in enumerate(operands) if not is_undef_primal(x)]
    args = [*residuals, *nonzero_cts, *[cell.get() for cell in cells]]
    places = [*places, *[None] * (len(args) - len(places))]
    outs = write_cells(cells, call.apply("transpose", pulled, places, params, args))
    return spread_list(linear, spread_list(nonzeros, outs))


def _dce(call: _Call, used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    smaller, used = dce_jaxpr(call.program(eqn.params), used_outputs)
    return used, eqn.replace(
        invars=select_list(used, eqn.invars),
        outvars=select_list(used_outputs, eqn.outvars),
        params=call.params("dce", smaller, select_list(used, range(len(used))), eqn.params),
    )


def _recompute(call: _Call, policy: Policy, eqn: JaxprEqn) -> Recomputed | None:
    recompute = find_recomputation()
    first, again, count = recompute.programs(call.program(eqn.params), policy)  # type: ignore[union-attr]  # calls this
    if not count:
        return None
    saved = [Var(a) for a in first.out_avals[len(eqn.outvars) :]]
    places = [*range(len(eqn.invars))]
    params = call.params("recompute", first, places, eqn.params)
    whole = eqn.replace(outvars=[*eqn.outvars, *saved], params=params)
    params = call.params("recompute", again, [*[None] * count, *places], eqn.params)
    return whole, eqn.replace(invars=[*saved, *eqn.invars], params=params), saved


def _translation(call: _Call, ctx: Any, in_avals: object, in_vals: Sequence[Any], /, **params: object) -> list[Any]:
    program = call.program(params)
    if "xla_translation" in call.inline:
        return ctx.inline(program, in_vals)  # type: ignore[no-any-return]  # see TranslationContext
    name = found if isinstance(found := params.get("name"), str) else call.primitive.name
    return ctx.call(program, in_vals, name)  # type: ignore[no-any-return]  # as above


_KINDS: dict[str, tuple[Any, Callable[..., Any], dict[str, bool]]] = {
    "impl": (impl_rules, _impl, {}),
    "abstract_eval": (abstract_eval_rules, _abstract_eval, {}),
    "jvp": (jvp_rules, _jvp, {"symbolic_zeros": True}),
    "vmap": (vmap_rules, _vmap, {}),
    "transpose": (transpose_rules, _transpose, {"symbolic_zeros": True}),
    "partial_eval": (partial_eval_rules, _partial_eval, {}),
    "partial_eval_jaxpr": (partial_eval_jaxpr_rules, _partial_eval_jaxpr, {}),
    "dce": (dce_rules, _dce, {}),
    "recompute": (recompute_rules, _recompute, {}),
    "xla_translation": (xla_translations, _translation, {}),
}


# -- what authors say ----------------------------------------------------------------------------------------


def defcall(
    primitive: Primitive,
    param: str = "jaxpr",
    *,
    update: Callable[[CallChange, Params], Params] | None = None,
    policy: Callable[[Params], Policy | None] | None = None,
    inline: bool | Iterable[str] = False,
    rules: Iterable[str] | None = None,
    without: Iterable[str] = (),
) -> None:
    """Register all rules of a primitive that calls a program with its operands as arguments.

        call_p = Primitive("acme.call", multiple_results=True, tags=("higher_order",), decomposition=inlining("jaxpr"))
        defcall(call_p, "jaxpr")

    The rules are of the kinds impl, abstract_eval, jvp, vmap, transpose, partial_eval, partial_eval_jaxpr, dce,
    recompute and xla_translation. If the arguments below do not suffice, the author writes some of these rules.

    Args:
        primitive: a primitive with multiple results and the tag "higher_order".
        param: name of the parameter that holds the program, a `ClosedJaxpr`.
        update: `update(change, params)` returns the other parameters that change when a rule replaces a call by a call
            of another program; see `CallChange`. By default, they stay. A parameter `name` names the compiled function.
        policy: `policy(params) -> Policy or None`: which inner values may be residuals of a partial evaluation.
        inline: the rules that bind the program's equations in place instead of a call: some of "jvp", "vmap",
            "transpose", "known" and "unknown" (the halves of a partial evaluation while tracing) and
            "xla_translation"; True for all.
        rules: the kinds of rules to register; all by default.
        without: the kinds of rules to omit, because the author writes them or the primitive has none.

    Raises:
        DuplicateRegistrationError: the primitive has one of the rules already.
        TypeError: the primitive lacks multiple results or the tag, or `param` is not an identifier.
        ValueError: a kind of rule is unknown.
    """
    if not isinstance(param, str) or not param.isidentifier():
        raise TypeError(
            f"defcall of {primitive.name!r}: param is the name of the parameter with the program: {param!r}"
        )
    if not primitive.multiple_results or "higher_order" not in primitive.tags:
        raise TypeError(
            f"defcall of {primitive.name!r}: a primitive that calls a program has as many results as the program; "
            'build it with multiple_results=True and tags=("higher_order",)'
        )
    places = ("jvp", "vmap", "transpose", "known", "unknown", "xla_translation")
    inline = _checked(primitive, "inline", places if inline is True else inline or (), places)
    kinds = _checked(primitive, "rules", _KINDS if rules is None else rules, _KINDS)
    kinds -= _checked(primitive, "without", without, _KINDS)
    place = Provenance.of_caller()
    call = _Call(primitive, param, update, policy, inline, place)
    for kind, (registry, of_call, flags) in _KINDS.items():
        if kind not in kinds:
            continue
        rule: Any = _bound(of_call, call)
        rule.__name__ = rule.__qualname__ = f"{primitive.name}_{kind}"
        rule.__module__, rule.__provenance__, rule.__helper__ = place.module, place, "defcall"
        registry.register(primitive, rule, **flags)


def _bound(of_call: Callable[..., object], call: _Call) -> RuleFn:
    """Return the rule of one declaration."""

    @functools.wraps(of_call)
    def rule(*args: object, **params: object) -> Any:
        return of_call(call, *args, **params)

    parameters = list(inspect.signature(of_call).parameters.values())[1:]
    if of_call is _impl:  # show the parameter with the program as required
        parameters.insert(1, inspect.Parameter(call.param, inspect.Parameter.KEYWORD_ONLY))
    rule.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions accept any attribute
    return rule


def _checked(primitive: Primitive, name: str, words: Iterable[str], allowed: Iterable[str]) -> set[str]:
    chosen = {words} if isinstance(words, str) else set(words)
    unknown = sorted(chosen - set(allowed))
    if unknown:
        raise ValueError(f"defcall of {primitive.name!r}: {name} has {unknown[0]!r}; there are {', '.join(allowed)}")
    return chosen


def inlining(param: str) -> Callable[..., list[Any]]:
    """Return a decomposition for `Primitive` that binds the equations of the program in a parameter.

    `defcall` registers rules of the kernel's kinds; the decomposition is for interpreters of other plugins.
    """

    def inlined(*operands: Any, **params: Any) -> list[Any]:
        return inline_closed(params[param], operands)

    inlined.__provenance__ = Provenance.of_caller()  # type: ignore[attr-defined]  # functions accept any attribute
    return inlined
