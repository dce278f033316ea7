"""`custom_jvp`: a function with a custom derivative."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from corejax.extend import add_tangents, as_array, fun_name, get_aval, leaf_names, nondifferentiable, tree
from corejax.extend.messages import NotDifferentiableError, api_boundary
from corejax.extend.transforms import check_outputs
from corejax_control_flow.custom._arguments import Arguments
from corejax_control_flow.custom._user_call import CustomRuleFunction, P, R, UserCall
from corejax_control_flow.custom.custom_jvp_rules import BatchedJvpCall, custom_jvp_call_p
from corejax_control_flow.custom.open_calls import bind_call, is_plain
from corejax_control_flow.custom.symbolic_zeros import (
    SymbolicZero,
    check_primals,
    checked_linear,
    for_rule,
    unflattened_like,
)
from corejax_control_flow.programs.messages import place


class JvpCall(UserCall):
    """One call of a function with a JVP rule."""

    primitive = custom_jvp_call_p
    param = "jvp"
    transform = "custom_jvp"
    batched_call = BatchedJvpCall

    def __init__(self, rules: Any, arguments: Arguments) -> None:
        super().__init__(rules.fun, rules.symbolic_zeros, arguments)
        self.rule = rules.jvp

    @property
    def __name__(self) -> str:
        """The name of the rule, for printed equations."""
        return fun_name(self.rule)

    def rules(self) -> tuple[Any, ...]:
        """Return the function, the rule, and whether the rule receives symbolic zeros."""
        return self.fun, self.rule, self.symbolic_zeros

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Run the user's rule on leaves and check its result."""
        arguments = self.arguments
        dynamic = tangents[arguments.num_static :]
        if all(t is None for t in dynamic):  # only arguments that are not differentiated have tangents
            outs = bind_call(self, primals)
            return outs, [None] * len(outs)
        shown = [
            for_rule(t, get_aval(x), self.symbolic_zeros)
            for t, x in zip(dynamic, primals[arguments.num_static :], strict=True)
        ]
        primals = [as_array(x) for x in primals]
        statics, args = arguments.statics(primals), arguments.primals(primals)
        return self._checked(self.rule(*statics, args, tree.tree_unflatten(arguments.in_tree, shown)))

    def _checked(self, result: Any) -> tuple[list[Any], list[Any]]:
        def what() -> str:
            return f"the JVP rule {place(self.rule)} of custom_jvp function {fun_name(self.fun)}"

        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TypeError(f"{what()} must return a pair (out, tangent_out), got {result!r}")
        outs, out_tree = tree.tree_flatten(result[0])
        check_outputs(self.rule, outs, out_tree)
        if self.avals_out is not None:
            check_primals(what, self.out_tree, self.avals_out, out_tree, outs)
        self.out_tree = out_tree
        outs = [as_array(x) for x in outs]
        avals = [get_aval(x) for x in outs]
        tangents_out = unflattened_like(lambda: f"{what()}: the tangent", out_tree, result[1], avals)
        names = functools.partial(leaf_names, out_tree, "result")
        return outs, checked_linear(lambda: f"{what()}: the tangent", avals, tangents_out, names)


class custom_jvp(CustomRuleFunction[P, R]):
    """Decorator for functions with a custom rule for the Jacobian-vector product.

        @custom_jvp
        def f(x, y):
            return sin(x) * y

        @f.defjvp
        def f_jvp(primals, tangents):
            x, y = primals
            x_dot, y_dot = tangents
            return f(x, y), cos(x) * x_dot * y + sin(x) * y_dot

    The rule serves forward and reverse mode and must therefore be linear in the tangents. Higher derivatives
    differentiate the rule itself. The rule runs only if `f` is differentiated, on concrete values if there are any:
    under eager `grad` and `jvp`, Python control flow on primals works in the rule as it does in `f`.

    Args:
        fun: function of pytrees of arrays. Arguments by keyword are resolved to positions.
        nondiff_argnums: positions of arguments that are not differentiated and are passed unchanged (functions,
            strings, also arrays, which then count as constants); the rule takes them before primals and tangents.
        nondiff_argnames: names of further such arguments.

    Raises:
        TypeError: if `fun` is not a function, or a position is not an integer.
        ValueError: if the function has no argument with such a position or name.
    """

    _transform = "custom_jvp"
    _no_rules: ClassVar[Mapping[str, Any]] = {"jvp": None}
    jvp: Callable[..., Any] | None

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Define the rule; usable as a decorator.

        Args:
            jvp: function `(*nondiff, primals, tangents) -> (out, tangent_out)`. Primals and tangents are tuples with an
                entry for each differentiated argument. Both results have the structure, shapes and dtypes of the
                function's result. Tangents of integers are `float0` zeros. A returned tangent may have None in place
                of any leaf, for zero; for integer results it must be None or `float0` zeros.
            symbolic_zeros: if True, pass tangents that are known to be zero as `SymbolicZero` (with `shape`, `dtype`,
                `instantiate()`) instead of arrays. The rule may return them as well.

        Returns:
            The rule.

        Raises:
            TypeError: if `jvp` is not a function.
        """
        if not callable(jvp):
            raise TypeError(f"defjvp of {fun_name(self.fun)} takes a function, got {jvp!r}")
        self.jvp = jvp
        self.symbolic_zeros = bool(symbolic_zeros)
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Define a rule for each argument; the resulting tangents are summed.

        Args:
            *jvps: for each argument, a function `(tangent, out, *primals) -> tangent_out`, None if the derivative is
                zero, or `corejax.extend.nondifferentiable(reason)` if it does not exist.

        Raises:
            TypeError: if the function has arguments that are not differentiated.
        """
        if self.nondiff_argnums:
            raise TypeError(
                f"defjvps of {fun_name(self.fun)}: with nondiff_argnums, define one rule for all arguments with defjvp"
            )

        call: Callable[..., R] = self

        def jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
            if len(primals) != len(jvps):
                raise TypeError(
                    f"defjvps of {fun_name(self.fun)} defined {len(jvps)} rules, the call has {len(primals)} arguments"
                )
            out = call(*primals)
            total: list[Any] = [None] * tree.tree_structure(out).num_leaves
            for i, (rule, t) in enumerate(zip(jvps, tangents, strict=True)):
                leaves = tree.tree_leaves(t)
                if rule is None or all(isinstance(leaf, SymbolicZero) for leaf in leaves):
                    continue
                if isinstance(rule, nondifferentiable):
                    raise NotDifferentiableError(
                        f"custom_jvp function {place(self.fun)} is not differentiable in argument {i}: {rule.reason}"
                    )
                t = tree.tree_map(lambda leaf: leaf.instantiate() if isinstance(leaf, SymbolicZero) else leaf, t)
                part = self._leaves(rule(t, out, *primals), out)
                total = [add_tangents(a, b) for a, b in zip(total, part, strict=True)]
            return out, tree.tree_unflatten(tree.tree_structure(out), total)

        jvp.__name__ = f"{fun_name(self.fun)}_jvp"
        self.defjvp(jvp, symbolic_zeros=True)

    def _leaves(self, tangent: Any, out: Any) -> list[Any]:
        def what() -> str:
            return f"defjvps of {fun_name(self.fun)}: the tangent of a rule"

        leaves, treedef = tree.tree_flatten(out)
        avals = [get_aval(x) for x in leaves]
        tangents = unflattened_like(what, treedef, tangent, avals)
        return checked_linear(what, avals, tangents, lambda: leaf_names(treedef, "result"))

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function.

        Raises:
            AttributeError: if `defjvp` was never called.
            TypeError: if the arguments do not fit the function's signature, or one is not an array; during
                differentiation, if the rule's result or tangent has another structure, shape or dtype than the
                function's result.
            ClosedOverError: if the function or its rule closes over a value that is being differentiated.
        """
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {place(self.fun)}: define a rule with "
                f"{fun_name(self.fun)}.defjvp"
            )
        if is_plain(args, kwargs):
            return self.fun(*args, **kwargs)
        return self._bind(lambda arguments: JvpCall(self, arguments), args, kwargs)
