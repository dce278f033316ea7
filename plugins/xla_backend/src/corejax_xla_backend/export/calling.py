"""`call_exported`, the primitive that calls an exported function, with its rules.

An artifact has programs for vjps only. The jvp rule therefore binds `call_exported_tangent`, which is linear in the
tangents, and the transpose of that primitive is the exported vjp. So reverse mode needs one exported vjp. Forward mode
evaluates `call_exported_tangent` itself: it transposes the vjp once more, by the exported vjp of the vjp.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from corejax.extend import (
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    check_arguments,
    dtypes,
    get_aval,
    impl_rules,
    is_undef_primal,
    jvp_rules,
    leaf_names,
    transpose_rules,
    tree,
    vmap_rules,
)
from corejax.extend.messages import NotDifferentiableError, not_of_rule
from corejax.extend.programs import select_list
from corejax.extend.transforms import structural, tangent_aval
from corejax.extend.types import ValueType

call_exported_p = Primitive(
    "call_exported",
    multiple_results=True,
    tags=("value_types",),
    doc="Call an exported function (`corejax.export`). Params: exported.",
)
effectful_call_exported_p = Primitive(
    "effectful_call_exported",
    multiple_results=True,
    effects=("exported",),
    tags=("value_types",),
    doc="Call an exported function with effects. Params: exported.",
)


class ArgumentNames:
    """The names of an exported function's arguments for messages, such as `args[0]['w']`."""

    def __init__(self, exported: Any) -> None:
        self.__name__ = exported.fun_name
        self._in_tree = exported.in_structure

    def __call__(self) -> list[str]:
        """Return the names, in the order of the leaves."""
        args, kwargs = self._in_tree.children()
        return [*leaf_names(args, "args"), *leaf_names(kwargs, "kwargs")]


def call(exported: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an exported function with arguments of the structure and types that it was exported for.

    Raises:
        ValueError: the structure, a shape or a dtype of the arguments is wrong.
    """
    leaves, in_tree = tree.tree_flatten((args, kwargs))
    if in_tree != exported.in_structure:
        differences = tree.equality_errors(exported.in_structure, in_tree, name="(args, kwargs)")
        raise ValueError(
            f"call of the exported function {exported.fun_name}: it takes arguments of the structure "
            f"{exported.in_structure}, got {in_tree}" + "".join(f"\n  {difference}" for difference in differences)
        )
    names = ArgumentNames(exported)
    check_arguments("export: call", names, leaves, names)
    if exported.uses_global_constants:
        exported = exported.specialized([get_aval(x) for x in leaves], names())
    return tree.tree_unflatten(exported.out_structure, _primitive(exported).bind(*leaves, exported=exported))


def _primitive(exported: Any) -> Primitive:
    return effectful_call_exported_p if exported.unordered_effects else call_exported_p


def is_differentiable(aval: ShapedArray) -> bool:
    """Return whether values of a type have tangents."""
    return bool(dtypes.is_inexact(aval.dtype))


# -- types ---------------------------------------------------------------------------------------------------------


def _abstract_eval(*avals: ShapedArray, exported: Any) -> Sequence[ShapedArray]:
    for i, (wanted, given) in enumerate(zip(exported.in_avals, avals, strict=True)):
        is_value = isinstance(wanted, ValueType) or isinstance(given, ValueType)
        if given is not wanted if is_value else (given.shape, given.dtype) != (wanted.shape, wanted.dtype):
            raise ValueError(
                f"call of the exported function {exported.fun_name}: it takes {wanted.str_short()} as argument "
                f"{ArgumentNames(exported)()[i]}, got {given.str_short()}; convert the argument, or export the "
                "function for these shapes and dtypes"
            )
    return exported.out_avals  # type: ignore[no-any-return]  # an Exported


# -- derivatives ---------------------------------------------------------------------------------------------------


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, exported: Any) -> tuple[list[Any], list[Any]]:
    outs = list(_primitive(exported).bind(*primals, exported=exported))
    smooth = [is_differentiable(aval) for aval in exported.out_avals]
    if not any(smooth):
        return outs, [None] * len(outs)
    if not exported.has_vjp():
        raise NotDifferentiableError(
            f"the exported function {exported.fun_name} has no vjp: it was serialized with vjp_order=0, or it is "
            "differentiated more often than its vjp_order allows. Export it again and serialize it with a greater "
            "vjp_order: exported.serialize(vjp_order=1)"
        )
    nonzero = tuple(t is not None for t in tangents)
    known = [t for t in tangents if t is not None]
    pushed = iter(call_exported_tangent_p.bind(*primals, *known, exported=exported, nonzero=nonzero))
    return outs, [next(pushed) if flag else None for flag in smooth]


def _push_forward(*operands: Any, exported: Any, nonzero: tuple[bool, ...]) -> list[Any]:
    """Return J v for the Jacobian J: the vjp maps u to J^T u, and its own vjp with respect to u maps v to J v."""
    if not exported.vjp().has_vjp():
        error = NotDifferentiableError(
            f"the exported function {exported.fun_name} has the derivatives for reverse mode (grad, vjp, jacrev) only: "
            "for forward mode (jvp, jacfwd, hessian), serialize it with a vjp_order that is greater by one, at least "
            "exported.serialize(vjp_order=2)"
        )
        raise not_of_rule(error)
    primals, known = operands[: len(nonzero)], iter(operands[len(nonzero) :])
    tangents = [next(known) if flag else None for flag in nonzero]
    cts = [structural.zeros(aval) for aval in _out_tangents(exported)]
    v = [
        structural.zeros(tangent_aval(aval)) if t is None else t
        for t, aval in zip(tangents, exported.in_avals, strict=True)
        if is_differentiable(aval)
    ]
    second = exported.vjp().vjp()
    return list(_primitive(second).bind(*primals, *cts, *v, exported=second)[-len(cts) :])


call_exported_tangent_p = Primitive(
    "call_exported_tangent",
    multiple_results=True,
    decomposition=_push_forward,
    doc="Push tangents through an exported function. Params: exported, nonzero (which arguments have a tangent).",
)


def _tangent_abstract_eval(*avals: ShapedArray, exported: Any, nonzero: tuple[bool, ...]) -> list[ShapedArray]:
    wanted = [tangent_aval(aval) for aval in (*exported.in_avals, *select_list(nonzero, exported.in_avals))]
    if [tangent_aval(aval).refined(None) for aval in avals] != wanted:
        shown = [", ".join(aval.str_short() for aval in each) for each in (wanted, avals)]
        raise ValueError(f"tangents of {exported.fun_name}: expected operands ({shown[0]}), got ({shown[1]})")
    return _out_tangents(exported)


def _out_tangents(exported: Any) -> list[ShapedArray]:
    return [tangent_aval(aval) for aval in exported.out_avals if is_differentiable(aval)]


def _tangent_transpose(cts: Sequence[Any], *operands: Any, exported: Any, nonzero: tuple[bool, ...]) -> list[Any]:
    """Pull back by the exported vjp, which takes the arguments and a cotangent of each differentiable result."""
    primals, tangents = operands[: len(nonzero)], operands[len(nonzero) :]
    vjp = exported.vjp()
    pulled = iter(_primitive(vjp).bind(*primals, *cts, exported=vjp))
    cts_in = [next(pulled) if is_differentiable(aval) else None for aval in exported.in_avals]
    wanted = select_list(nonzero, cts_in)
    return [
        *(None for _ in primals),
        *(ct if is_undef_primal(t) else None for ct, t in zip(wanted, tangents, strict=True)),
    ]


def _impl(*arrays: Any, primitive: Primitive, exported: Any) -> Any:
    """Run a compiled program from the cache on the exported function."""
    from corejax_xla_backend._compiled_impl import run_alone

    return run_alone(primitive, arrays, {"exported": exported}, exported.kept)


for _p in (call_exported_p, effectful_call_exported_p):
    abstract_eval_rules.register(_p, _abstract_eval)
    jvp_rules.register(_p, _jvp, symbolic_zeros=True)
    impl_rules.register(_p, functools.partial(_impl, primitive=_p), device=True)
    vmap_rules.register(_p, by="loop")

abstract_eval_rules.register(call_exported_tangent_p, _tangent_abstract_eval)
transpose_rules.register(call_exported_tangent_p, _tangent_transpose)
