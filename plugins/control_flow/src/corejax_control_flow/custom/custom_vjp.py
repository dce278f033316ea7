"""`custom_vjp`: a function with custom forward and backward passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from corejax.extend import (
    DebugInfo,
    ShapedArray,
    as_array,
    current_trace,
    dtypes,
    fun_name,
    get_aval,
    leaf_names,
    merge_lists,
    partition_list,
    stage,
    tree,
)
from corejax.extend.messages import api_boundary
from corejax.extend.transforms import check_outputs, leaves_like
from corejax_control_flow.custom._arguments import Arguments
from corejax_control_flow.custom._user_call import CustomRuleFunction, P, R, UserCall
from corejax_control_flow.custom.custom_vjp_rules import BatchedVjpCall, Forward, custom_vjp_call_p
from corejax_control_flow.custom.open_calls import evaluates, is_plain
from corejax_control_flow.custom.remat_opt import remat_opt_p
from corejax_control_flow.custom.symbolic_zeros import CustomVJPPrimal, check_primals, checked_linear, for_rule, is_zero
from corejax_control_flow.programs.messages import place, typed_tree, typed_value
from corejax_control_flow.programs.tracing import Traced, with_common_consts

# Residuals that are Python numbers do not become operands: the backward pass receives them as numbers, so that Python
# control flow can depend on them.
_NUMBERS = (bool, int, float, complex)


class VjpCall(UserCall):
    """One call of a function with rules for reverse mode."""

    primitive = custom_vjp_call_p
    param = "vjp"
    transform = "custom_vjp"
    batched_call = BatchedVjpCall

    def __init__(self, rules: Any, arguments: Arguments) -> None:
        super().__init__(rules.fun, rules.symbolic_zeros, arguments)
        self.rule_fwd, self.rule_bwd = rules.fwd, rules.bwd
        self.optimize_remat = rules.optimize_remat

    @property
    def __name__(self) -> str:
        """The names of the rules, for printed equations."""
        return f"{fun_name(self.rule_fwd)}, {fun_name(self.rule_bwd)}"

    def rules(self) -> tuple[Any, ...]:
        """Return the function, both rules and their options."""
        return self.fun, self.rule_fwd, self.rule_bwd, self.symbolic_zeros, self.optimize_remat

    def fwd(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Forward:
        """Run the user's forward pass on leaves and check its result."""
        if self.optimize_remat and not evaluates(current_trace()):
            return self._staged_fwd(primals)
        outs, residuals, pullback = self._run_fwd(primals, perturbed)
        return Forward([as_array(x) for x in outs], [as_array(x) for x in residuals], pullback)

    def _run_fwd(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Forward:
        arguments, count = self.arguments, self.arguments.num_static
        leaves = [as_array(x) for x in primals]
        if self.symbolic_zeros:
            leaves[count:] = map(CustomVJPPrimal, leaves[count:], perturbed[count:])
        result = self.rule_fwd(*arguments.unflatten(leaves))

        def what() -> str:
            return f"the forward rule {place(self.rule_fwd)} of custom_vjp function {fun_name(self.fun)}"

        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TypeError(f"{what()} must return a pair (out, residuals), got {result!r}")
        outs, out_tree = tree.tree_flatten(result[0])
        check_outputs(self.rule_fwd, outs, out_tree)
        if self.avals_out is not None:
            check_primals(what, self.out_tree, self.avals_out, out_tree, outs)
        self.out_tree = out_tree
        residuals, res_tree = tree.tree_flatten(result[1])
        check_outputs(self.rule_fwd, residuals, res_tree)
        statics = primals[: arguments.num_static]
        avals = [get_aval(x) for x in primals]
        are_numbers = [type(x) in _NUMBERS for x in residuals]
        residuals, numbers = partition_list(are_numbers, residuals)
        pullback = _Pullback(
            self,
            out_tree,
            res_tree,
            [get_aval(x) for x in outs],
            avals,
            lambda xs: merge_lists(are_numbers, xs, numbers),
        )
        return Forward(outs, [*statics, *residuals], pullback)

    def _staged_fwd(self, primals: Sequence[Any]) -> Forward:
        """Stage the forward pass as one equation, which DCE replaces by the function if no residual is used."""
        made: list[Forward] = []

        def flat(*leaves: Any) -> list[Any]:
            made.append(self._run_fwd(leaves, [True] * len(leaves)))
            return [*made[0].outs, *made[0].residuals]

        avals = [get_aval(x) for x in primals]
        fwd = Traced(*stage(flat, avals, DebugInfo(self.rule_fwd, self.transform)), None)
        fun = Traced(*stage(self.run, avals, DebugInfo(self.fun, self.transform)), None)
        (fwd_jaxpr, fun_jaxpr), consts = with_common_consts([fwd, fun])
        num_res = len(made[0].residuals)
        outs = remat_opt_p.bind(
            *consts, *primals, fun_jaxpr=fun_jaxpr, fwd_jaxpr=fwd_jaxpr, name=fun_name(self.fun), num_res=num_res
        )
        count = len(outs) - num_res
        return Forward(outs[:count], outs[count:], made[0].pullback)


class _Pullback:
    """The backward pass of one call: the parameter of its `custom_lin`."""

    def __init__(
        self,
        call: VjpCall,
        out_tree: Any,
        res_tree: Any,
        avals_out: list[ShapedArray],
        avals_in: list[ShapedArray],
        with_numbers: Callable[[Sequence[Any]], list[Any]],
    ) -> None:
        self.call = call
        self.out_tree = out_tree
        self.res_tree = res_tree
        self.avals_out = avals_out
        self.avals_in = avals_in
        self.with_numbers = with_numbers

    @property
    def __name__(self) -> str:
        """The name of the rule, for printed equations."""
        return fun_name(self.call.rule_bwd)

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Return cotangents of the leaves of the call's arguments, None for zero."""
        call, count = self.call, self.call.arguments.num_static
        shown_cts = [for_rule(ct, a, call.symbolic_zeros) for ct, a in zip(cts, self.avals_out, strict=True)]
        result = call.rule_bwd(
            *call.arguments.statics(residuals[:count]),
            tree.tree_unflatten(self.res_tree, self.with_numbers(residuals[count:])),
            tree.tree_unflatten(self.out_tree, shown_cts),
        )
        return [*(None for _ in range(count)), *self._checked(result, self.avals_in[count:])]

    def _checked(self, result: Any, avals: Sequence[ShapedArray]) -> list[Any]:
        call, in_tree = self.call, self.call.arguments.in_tree

        def what() -> str:
            return f"the backward rule {place(call.rule_bwd)} of custom_vjp function {fun_name(call.fun)}"

        children = in_tree.children()
        if not isinstance(result, (tuple, list)) or len(result) != len(children):
            got = (
                f"{len(result)} entries" if isinstance(result, tuple | list) else f"{type(result).__name__}: {result!r}"
            )
            form = f"({', '.join(f'ct{i}' for i in range(len(children)))}{',' if len(children) == 1 else ''})"
            raise TypeError(
                f"{what()} must return a tuple with a cotangent for each of the {len(children)} arguments that are "
                f"differentiated, {form if len(children) < 5 else '(ct0, ct1, ...)'}, got {got}"
            )
        leaves: list[Any] = []
        start = 0
        for i, (child, ct) in enumerate(zip(children, result, strict=True)):
            own = avals[start : start + child.num_leaves]
            start += child.num_leaves
            leaves += [None] * child.num_leaves if is_zero(ct) else _like(what, i, child, ct, own)
        # Integers have no cotangents: a rule's results for them are ignored.
        leaves = [x if dtypes.is_inexact(a.dtype) else None for x, a in zip(leaves, avals, strict=True)]
        return checked_linear(lambda: f"{what()}: the cotangent", avals, leaves, lambda: leaf_names(in_tree, "args"))


def _like(what: Callable[[], str], i: int, treedef: Any, ct: Any, avals: Sequence[ShapedArray]) -> list[Any]:
    """Return the leaves of a cotangent of one argument, None for zero."""

    def mismatch(got: Any) -> str:
        own = typed_tree(treedef, avals)
        return f"{what()}: the cotangent of args[{i}] has the structure\n  {typed_value(ct)}\nthe argument has\n  {own}"

    if (leaves := _leaves_of_prefix(treedef, ct)) is not None:
        return leaves
    return leaves_like(treedef, ct, mismatch)


def _leaves_of_prefix(treedef: Any, ct: Any) -> list[Any] | None:
    """Return the leaves of a cotangent that is a prefix of `treedef`, or None if it is not.

    A nonzero leaf may stand for a subtree with one leaf, a zero for any subtree.
    """
    if tree.tree_structure(ct) == treedef:
        return None
    leaves, structure = tree.tree_flatten(ct, is_leaf=is_zero)
    try:
        numbers = tree.broadcast_prefix(
            tree.tree_unflatten(structure, range(len(leaves))), tree.tree_unflatten(treedef, range(treedef.num_leaves))
        )
    except ValueError:
        return None
    nonzero = [i for i, x in enumerate(leaves) if not is_zero(x)]
    used_once = nonzero == [i for i in numbers if not is_zero(leaves[i])]
    return [None if is_zero(leaves[i]) else leaves[i] for i in numbers] if used_once else None


class custom_vjp(CustomRuleFunction[P, R]):
    """Decorator for functions with custom rules for reverse-mode differentiation.

        @custom_vjp
        def f(x, y):
            return sin(x) * y

        def f_fwd(x, y):
            return f(x, y), (cos(x), sin(x), y)

        def f_bwd(res, ct):
            cos_x, sin_x, y = res
            return cos_x * ct * y, sin_x * ct

        f.defvjp(f_fwd, f_bwd)

    The rules run only if `f` is differentiated; forward mode raises an error. Higher derivatives differentiate the
    rules themselves. The backward pass need not be linear (it may clip gradients, say).

    Args:
        fun: function of pytrees of arrays. Arguments by keyword are resolved to positions.
        nondiff_argnums: positions of arguments that are not differentiated and are passed unchanged. The forward pass
            takes them at these positions, the backward pass before its other arguments.
        nondiff_argnames: names of further such arguments.

    Raises:
        TypeError: if `fun` is not a function, or a position is not an integer.
        ValueError: if the function has no argument with such a position or name.
    """

    _transform = "custom_vjp"
    _no_rules: ClassVar[Mapping[str, Any]] = {"fwd": None, "bwd": None, "optimize_remat": False}
    fwd: Callable[..., Any] | None
    bwd: Callable[..., Any] | None
    optimize_remat: bool

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Define the rules.

        Args:
            fwd: function of the arguments of `fun` that returns `(out, residuals)`; residuals are any pytree of arrays.
            bwd: function `(*nondiff, residuals, ct) -> cotangents`. `ct` has the structure of the result. The
                cotangents are a tuple with an entry for each differentiated argument, of the argument's structure,
                shapes and dtypes. None in place of an argument or of any leaf means zero; integers have None or
                `float0` zeros.
            symbolic_zeros: if True, `fwd` receives each leaf of the differentiated arguments as a `CustomVJPPrimal`
                (`value`, `perturbed`), and `bwd` receives cotangents that are known to be zero as `SymbolicZero`.
            optimize_remat: if True, a staged program that does not use the residuals (under `checkpoint`, say) runs
                the function itself instead of `fwd`. Staging then traces both.

        Raises:
            TypeError: if a rule is not a function.
            NotImplementedError: if `symbolic_zeros` and `optimize_remat` are both True.
        """
        for name, rule in (("fwd", fwd), ("bwd", bwd)):
            if not callable(rule):
                raise TypeError(f"defvjp of {fun_name(self.fun)}: {name} must be a function, got {rule!r}")
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros = bool(symbolic_zeros)
        self.optimize_remat = bool(optimize_remat)
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError("defvjp takes symbolic_zeros=True or optimize_remat=True, not both")

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function.

        Raises:
            AttributeError: if `defvjp` was never called.
            TypeError: if the arguments do not fit the function's signature, or one is not an array; during
                differentiation, if a result of a rule has the wrong structure, shape or dtype, or the mode is forward.
            ClosedOverError: if the function or a rule closes over a value that is being differentiated.
        """
        if self.fwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {place(self.fun)}: define rules with "
                f"{fun_name(self.fun)}.defvjp(fwd, bwd)"
            )
        if is_plain(args, kwargs):
            return self.fun(*args, **kwargs)
        return self._bind(lambda arguments: VjpCall(self, arguments), args, kwargs)
