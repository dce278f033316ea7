"""One call of a `custom_jvp` function: its rule on leaves, checked."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, as_array, fun_name, get_aval, leaf_names, tree
from corejax.extend.transforms import BatchTrace, check_outputs
from corejax_control_flow.custom._arguments import Arguments
from corejax_control_flow.custom._user_call import UserCall
from corejax_control_flow.custom.custom_jvp_rules import BatchedJvpCall, custom_jvp_call_p
from corejax_control_flow.custom.open_calls import bind_call
from corejax_control_flow.custom.symbolic_zeros import check_primals, checked_linear, for_rule, unflattened_like
from corejax_control_flow.programs.messages import place


class JvpCall(UserCall):
    """One call of a function with a JVP rule."""

    primitive = custom_jvp_call_p
    transform = "custom_jvp"

    def __init__(self, rules: Any, arguments: Arguments) -> None:
        super().__init__(rules.fun, rules.symbolic_zeros, arguments)
        self.rule = rules.jvp
        self.__name__ = fun_name(self.rule)

    def rules(self) -> tuple[Any, ...]:
        """Function, rule, and whether the rule is told which tangents are zero."""
        return self.fun, self.rule, self.symbolic_zeros

    def params(self, program: ClosedJaxpr | None, rule: Any, num_consts: int) -> dict[str, Any]:
        """Of `custom_jvp_call`."""
        return {
            "call_jaxpr": program,
            "jvp": rule,
            "name": fun_name(self.fun),
            "num_consts": num_consts,
            "symbolic_zeros": self.symbolic_zeros,
        }

    def batched(self, trace: BatchTrace, dims: list[int | None]) -> BatchedJvpCall:
        """The call on batches."""
        return BatchedJvpCall(self, trace, dims)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The user's rule on leaves, checked."""
        arguments = self.arguments
        moving = tangents[arguments.num_static :]
        if all(t is None for t in moving):  # only arguments that are not differentiated have tangents
            outs = bind_call(self, primals)
            return outs, [None] * len(outs)
        shown = [
            for_rule(t, get_aval(x), self.symbolic_zeros)
            for t, x in zip(moving, primals[arguments.num_static :], strict=True)
        ]
        primals = [as_array(x) for x in primals]
        statics, args = arguments.statics(primals), arguments.primals(primals)
        return self._checked(self.rule(*statics, args, tree.tree_unflatten(arguments.in_tree, shown)))

    def _checked(self, result: Any) -> tuple[list[Any], list[Any]]:
        what = f"the JVP rule {place(self.rule)} of custom_jvp function {fun_name(self.fun)}"
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(f"{what} returns a pair (out, tangent_out), got {result!r}")
        outs, out_tree = tree.tree_flatten(result[0])
        check_outputs(self.rule, outs, out_tree)
        if self.avals_out is not None:
            check_primals(what, self.out_tree, self.avals_out, out_tree, outs)
        self.out_tree = out_tree
        outs = [as_array(x) for x in outs]
        avals = [get_aval(x) for x in outs]
        given = unflattened_like(f"{what}: the tangent", out_tree, result[1], avals)
        names = functools.partial(leaf_names, out_tree, "result")
        return outs, checked_linear(f"{what}: the tangent", avals, given, names)
