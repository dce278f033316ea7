"""`custom_vmap_call`: a program with a custom vmap rule.

custom_vmap_call : a -> b        given a program a -> b and a rule for n a -> n b
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from corejax.extend import (
    ClosedJaxpr,
    Primitive,
    defcall,
    inlining,
    instantiate,
    jvp_flat,
    jvp_jaxpr,
    jvp_rules,
    move_batch_axis,
    spread_list,
    vmap_rules,
)
from corejax.extend.messages import not_of_rule
from corejax.extend.programs import select_list
from corejax.extend.transforms import batch_flat
from corejax_control_flow.custom.closed_over import ClosedOverError
from corejax_control_flow.custom.open_calls import PLAIN_RULES
from corejax_control_flow.programs.rewriting import rearranged

custom_vmap_call_p = Primitive(
    "custom_vmap_call",
    multiple_results=True,
    tags=("higher_order",),
    decomposition=inlining("call_jaxpr"),
    doc="Call a program that has a custom vmap rule. Params: call_jaxpr, name, num_consts, rule.",
)


class VmapRule(Protocol):
    """The type of the parameter `rule`."""

    def vmap(self, axis_size: int, batched: Sequence[bool], args: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        """Return results and flags of the batched ones; batches are along axis 0."""


# Partial evaluation splits the called program: its known part runs now, its unknown part is recorded.
defcall(custom_vmap_call_p, "call_jaxpr", inline=True, rules=(*PLAIN_RULES, "partial_eval"))


@vmap_rules.register(custom_vmap_call_p)
def custom_vmap_call_vmap(
    axis_size: int, vals: Any, dims: Any, *, rule: VmapRule, name: str, num_consts: int, **params: Any
) -> Any:
    """Run the user's rule now."""
    if any(d is not None for d in dims[:num_consts]):
        raise _closed_over(name, "a batched value")
    batched = [d is not None for d in dims[num_consts:]]
    args = [
        x if d is None else move_batch_axis(axis_size, d, 0, x)
        for x, d in zip(vals[num_consts:], dims[num_consts:], strict=True)
    ]
    try:
        outs, flags = rule.vmap(axis_size, batched, args)
    except Exception as error:
        not_of_rule(error)  # the error comes from the user's function
        raise
    return outs, [0 if b else None for b in flags]


def _closed_over(name: str, what: str) -> ClosedOverError:
    return ClosedOverError(
        f"custom_vmap function {name} closes over {what}, which its rule does not receive. Pass the value as an "
        "argument."
    )


@jvp_rules.register(custom_vmap_call_p, symbolic_zeros=True)
def custom_vmap_call_jvp(
    primals: Any, tangents: Any, *, call_jaxpr: ClosedJaxpr, rule: VmapRule, name: str, num_consts: int
) -> Any:
    """Bind the call for the results, and a call of the derivative with the rule's derivative for the tangents."""
    params = {"call_jaxpr": call_jaxpr, "rule": rule, "name": name, "num_consts": num_consts}
    outs = custom_vmap_call_p.bind(*primals, **params)
    nonzeros = [t is not None for t in tangents]
    jvp_program, nonzeros_out = jvp_jaxpr(call_jaxpr, nonzeros)
    count = len(outs)
    derivative = rearranged(jvp_program, range(len(jvp_program.in_avals)), range(count, len(jvp_program.out_avals)))
    tangents_out = custom_vmap_call_p.bind(
        *primals,
        *select_list(nonzeros, tangents),
        call_jaxpr=derivative,
        rule=_JvpOfRule(rule, name, num_consts, nonzeros, nonzeros_out),
        name=f"jvp({name})",
        num_consts=0,
    )
    return outs, spread_list(nonzeros_out, tangents_out)


class _JvpOfRule:
    """The derivative of a vmap rule; a value and its tangent are batched together.

    If only tangents are batched, the rule receives unbatched values, and its derivative is batched over the tangents.
    """

    def __init__(
        self, rule: VmapRule, name: str, num_consts: int, nonzeros: Sequence[bool], nonzeros_out: Sequence[bool]
    ) -> None:
        self.rule = rule
        self.name = name
        self.num_consts = num_consts
        self.nonzeros = nonzeros
        self.nonzeros_out = nonzeros_out
        self.__name__ = f"jvp({getattr(rule, '__name__', 'rule')})"

    def vmap(self, axis_size: int, batched: Sequence[bool], args: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        """Return the tangents of the results, and flags of the batched ones."""
        count, consts = len(self.nonzeros), self.num_consts
        tangents = spread_list(self.nonzeros, args[count:])
        t_batched = [bool(b) for b in spread_list(self.nonzeros, batched[count:])]
        either = [a or b for a, b in zip(batched[:count], t_batched, strict=True)]
        if any(either[:consts]) or any(self.nonzeros[:consts]):
            raise _closed_over(self.name, "a value that is batched or differentiated")

        if not any(batched[:count]):
            result = self._over_tangents(axis_size, args[consts:count], tangents[consts:], t_batched[consts:])
            if result is not None:
                return result

        def full(x: Any, is_batched: bool, wanted: bool) -> Any:
            return move_batch_axis(axis_size, None, 0, x) if wanted and not is_batched and x is not None else x

        primals = [full(x, b, w) for x, b, w in zip(args[:count], batched[:count], either, strict=True)]
        tangents = [full(t, b, w) for t, b, w in zip(tangents, t_batched, either, strict=True)]
        return self._jvp(axis_size, either[consts:], primals[consts:], tangents[consts:])

    def _jvp(
        self, axis_size: int, batched: Sequence[bool], primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        flags: list[bool] = []

        def flat(*values: Any) -> list[Any]:
            outs, out_batched = self.rule.vmap(axis_size, batched, values)
            flags.extend(out_batched)
            return outs

        outs, tangents_out = jvp_flat(flat, primals, tangents)
        tangents_out = [instantiate(t, x) for t, x in zip(tangents_out, outs, strict=True)]
        return select_list(self.nonzeros_out, tangents_out), select_list(self.nonzeros_out, flags)

    def _over_tangents(
        self, axis_size: int, primals: Sequence[Any], tangents: Sequence[Any], batched: Sequence[bool]
    ) -> tuple[list[Any], list[bool]] | None:
        """Batch the rule's derivative over the tangents alone; return None if the rule still batches a result."""
        nonzeros = [t is not None for t in tangents]
        flags: list[bool] = []

        def flat(*ts: Any) -> list[Any]:
            outs, out_batched = self._jvp(axis_size, [False] * len(primals), primals, spread_list(nonzeros, ts))
            flags.extend(out_batched)
            return outs

        dims = [0 if b else None for b in select_list(nonzeros, batched)]
        outs, dims_out = batch_flat(flat, axis_size, select_list(nonzeros, tangents), dims)
        if any(flags):
            return None
        moved = [x if d is None else move_batch_axis(axis_size, d, 0, x) for x, d in zip(outs, dims_out, strict=True)]
        return moved, [d is not None for d in dims_out]
