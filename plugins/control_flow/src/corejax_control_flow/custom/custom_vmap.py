"""`custom_vmap`: a function with a custom rule for `vmap`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from corejax.extend import (
    Array,
    ShapedArray,
    Trace,
    Tracer,
    as_array,
    close_over_consts,
    current_trace,
    fun_name,
    get_aval,
    leaf_names,
    tree,
)
from corejax.extend.messages import api_boundary
from corejax.extend.transforms import BatchTrace, check_outputs, unmapped_aval
from corejax_control_flow.custom._user_call import CustomRuleFunction, P, R
from corejax_control_flow.custom.custom_vmap_rules import custom_vmap_call_p
from corejax_control_flow.custom.open_calls import evaluates
from corejax_control_flow.programs.messages import place, shown, typed_tree
from corejax_control_flow.programs.tracing import check_leaves, same_type, trace


class custom_vmap(CustomRuleFunction[P, R]):
    """Decorator for functions with a custom rule for `vmap`.

        @custom_vmap
        def f(x, y):
            return x @ y

        @f.def_vmap
        def f_vmap(axis_size, in_batched, x, y):
            x_batched, y_batched = in_batched
            ...
            return out, out_batched

    If `vmap` is inside `grad` or `jvp`, the rule is differentiated. Forward mode inside `vmap` uses the derivative of
    the rule as well. In reverse mode inside `vmap`, results come from the rule and cotangents from the function itself.

    Args:
        fun: function of pytrees of arrays. Arguments by keyword are resolved to positions.

    Raises:
        TypeError: if `fun` is not a function.
    """

    _transform = "custom_vmap"
    _no_rules: ClassVar[Mapping[str, Any]] = {"vmap_rule": None}
    vmap_rule: Callable[..., Any] | None

    def __init__(self, fun: Callable[P, R]) -> None:
        super().__init__(fun)

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Define the rule; usable as a decorator.

        Args:
            vmap_rule: function `(axis_size, in_batched, *args) -> (out, out_batched)`. `in_batched` is a list with the
                structure of the arguments; its leaves are True for leaves that are batched, always along axis 0.
                `out_batched` flags the leaves of the result in the same way, as a pytree of the result's structure or
                a prefix of it.

        Returns:
            The rule.

        Raises:
            TypeError: if `vmap_rule` is not a function.
        """
        if not callable(vmap_rule):
            raise TypeError(f"def_vmap of {fun_name(self.fun)} takes a function, got {vmap_rule!r}")
        self.vmap_rule = vmap_rule
        return vmap_rule

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function.

        Raises:
            AttributeError: if `def_vmap` was never called.
            TypeError: if the arguments do not fit the function's signature, or one is not an array; under `vmap`, if
                the rule's result has another structure than the function's, or a type that contradicts `out_batched`.
        """
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {place(self.fun)}: define one with "
                f"{fun_name(self.fun)}.def_vmap"
            )
        plain = _is_unbatched(current_trace())
        if plain and not kwargs and all(type(x) is Array or isinstance(x, Tracer) for x in args):
            return self.fun(*args, **kwargs)
        positional = self._parameters.positional(args, kwargs)
        leaves, in_tree = check_leaves("custom_vmap", self.fun, positional, "args")
        out: R
        if plain:
            fun: Callable[..., R] = self.fun
            arrays = tree.tree_unflatten(in_tree, [as_array(x) for x in leaves])
            out = tree.tree_map(as_array, fun(*arrays))
            return out
        jaxpr, consts, out_tree, _ = trace("custom_vmap", self.fun, in_tree, [get_aval(x) for x in leaves])
        program = close_over_consts(jaxpr)
        outs = custom_vmap_call_p.bind(
            *consts,
            *leaves,
            call_jaxpr=program,
            name=fun_name(self.fun),
            num_consts=len(consts),
            rule=_UserRule(self.fun, self.vmap_rule, in_tree, out_tree, program.out_avals),
        )
        out = tree.tree_unflatten(out_tree, outs)
        return out


def _is_unbatched(trace: Trace) -> bool:
    """Return whether nothing is staged and no enclosing trace is a batching trace."""
    if not evaluates(trace):
        return False
    below: Trace | None = trace
    while below is not None:
        if isinstance(below, BatchTrace):
            return False
        below = below.parent
    return True


class _UserRule:
    """A user's rule on leaves, with checks of its result."""

    def __init__(self, fun: Any, rule: Any, in_tree: Any, out_tree: Any, avals_out: list[ShapedArray]) -> None:
        self.fun = fun
        self.rule = rule
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.avals_out = avals_out
        self.__name__ = fun_name(rule)

    def vmap(self, axis_size: int, batched: Sequence[bool], args: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        """Return results and flags of the batched ones."""
        in_batched = list(tree.tree_unflatten(self.in_tree, batched))
        arrays = tree.tree_unflatten(self.in_tree, [as_array(x) for x in args])
        result = self.rule(axis_size, in_batched, *arrays)
        what = f"the vmap rule {place(self.rule)} of custom_vmap function {fun_name(self.fun)}"
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(f"{what} must return a pair (out, out_batched), got {result!r}")
        outs, out_tree = tree.tree_flatten(result[0])
        check_outputs(self.rule, outs, out_tree)
        if out_tree != self.out_tree:
            raise TypeError(
                f"{what} returns a result of another structure than the function:\n"
                f"  rule:     {typed_tree(out_tree, [get_aval(x) for x in outs])}\n"
                f"  function: {typed_tree(self.out_tree, self.avals_out)}"
            )
        try:
            flags = [bool(b) for b in tree.broadcast_prefix(result[1], result[0])]
        except ValueError as error:
            raise TypeError(f"{what}: out_batched does not have the structure of the result: {error}") from None
        for i, (x, b, aval) in enumerate(zip(outs, flags, self.avals_out, strict=True)):
            expected, got = unmapped_aval(axis_size, 0 if b else None, aval), get_aval(x)
            if not same_type(got, expected):
                name = leaf_names(out_tree, "result")[i]
                kind = f"batched (axis size {axis_size})" if b else "not batched"
                raise TypeError(f"{what} returns {name} of type {shown(got)}; {kind}, it must be {shown(expected)}")
        return [as_array(x) for x in outs], flags
