"""`custom_vjp`: a function whose backward pass its author gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from corejax_control_flow.custom._user_call import P, R, RuleGiven, UserCall
from corejax_control_flow.custom.custom_vjp_rules import BatchedVjpCall, Forward, custom_vjp_call_p
from corejax_control_flow.custom.open_calls import evaluates, is_plain
from corejax_control_flow.custom.remat_opt import remat_opt_p
from corejax_control_flow.custom.symbolic_zeros import CustomVJPPrimal, check_primals, checked_linear, for_rule, is_zero
from corejax_control_flow.programs.messages import place, typed_tree, typed_value
from corejax_control_flow.programs.tracing import Traced, with_common_consts

# Residuals that are Python's numbers are no operands: the backward pass gets them as they are, and may decide by them.
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
        self.__name__ = f"{fun_name(rules.fwd)}, {fun_name(rules.bwd)}"

    def rules(self) -> tuple[Any, ...]:
        """Function, both rules, and what the rules receive beside values."""
        return self.fun, self.rule_fwd, self.rule_bwd, self.symbolic_zeros, self.optimize_remat

    def fwd(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Forward:
        """The user's forward pass on leaves, checked."""
        if self.optimize_remat and not evaluates(current_trace()):
            return self._staged_fwd(primals)
        outs, residuals, pullback = self._run_fwd(primals, perturbed)
        return Forward([as_array(x) for x in outs], [as_array(x) for x in residuals], pullback)

    def _run_fwd(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Forward:
        arguments, count = self.arguments, self.arguments.num_static
        given = [as_array(x) for x in primals]
        if self.symbolic_zeros:
            given[count:] = map(CustomVJPPrimal, given[count:], perturbed[count:])
        result = self.rule_fwd(*arguments.whole(given))  # type: ignore[misc]
        what = f"the forward rule {place(self.rule_fwd)} of custom_vjp function {fun_name(self.fun)}"
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(f"{what} returns a pair (out, residuals), got {result!r}")
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
        """The forward pass as an equation. Without uses of residuals, dead code elimination makes it the function."""
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
        self.__name__ = fun_name(call.rule_bwd)

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Cotangents of the leaves of the call's arguments; None for zero."""
        call, count = self.call, self.call.arguments.num_static
        shown_cts = [for_rule(ct, a, call.symbolic_zeros) for ct, a in zip(cts, self.avals_out, strict=True)]
        result = call.rule_bwd(  # type: ignore[misc]
            *call.arguments.statics(residuals[:count]),
            tree.tree_unflatten(self.res_tree, self.with_numbers(residuals[count:])),
            tree.tree_unflatten(self.out_tree, shown_cts),
        )
        return [*(None for _ in range(count)), *self._checked(result, self.avals_in[count:])]

    def _checked(self, result: Any, avals: Sequence[ShapedArray]) -> list[Any]:
        call, in_tree = self.call, self.call.arguments.in_tree
        what = f"the backward rule {place(call.rule_bwd)} of custom_vjp function {fun_name(call.fun)}"
        children = in_tree.children()
        if not isinstance(result, tuple | list) or len(result) != len(children):
            got = (
                f"{len(result)} entries" if isinstance(result, tuple | list) else f"{type(result).__name__}: {result!r}"
            )
            form = f"({', '.join(f'ct{i}' for i in range(len(children)))}{',' if len(children) == 1 else ''})"
            raise TypeError(
                f"{what} returns a tuple with a cotangent for each of the {len(children)} arguments that are "
                f"differentiated, {form if len(children) < 5 else '(ct0, ct1, ...)'}, got {got}"
            )
        leaves: list[Any] = []
        start = 0
        for i, (child, ct) in enumerate(zip(children, result, strict=True)):
            own = avals[start : start + child.num_leaves]
            start += child.num_leaves
            leaves += [None] * child.num_leaves if is_zero(ct) else _like(what, i, child, ct, own)
        # Integers have no cotangents: what a rule returns for them is dropped.
        leaves = [x if dtypes.is_inexact(a.dtype) else None for x, a in zip(leaves, avals, strict=True)]
        return checked_linear(f"{what}: the cotangent", avals, leaves, lambda: leaf_names(in_tree, "args"))


def _like(what: str, i: int, treedef: Any, ct: Any, avals: Sequence[ShapedArray]) -> list[Any]:
    """Leaves of a cotangent of one argument; None for zero."""

    def mismatch(got: Any) -> str:
        own = typed_tree(treedef, avals)
        return f"{what}: the cotangent of args[{i}] has the structure\n  {typed_value(ct)}\nthe argument has\n  {own}"

    if (alone := _leaves_alone(treedef, ct)) is not None:
        return alone
    return leaves_like(treedef, ct, mismatch)


def _leaves_alone(treedef: Any, ct: Any) -> list[Any] | None:
    """Leaves of a cotangent in which a leaf may stand for a part with one leaf; None where it is no such."""
    if tree.tree_structure(ct) == treedef:
        return None
    leaves, structure = tree.tree_flatten(ct, is_leaf=is_zero)
    try:
        numbers = tree.broadcast_prefix(
            tree.tree_unflatten(structure, range(len(leaves))), tree.tree_unflatten(treedef, range(treedef.num_leaves))
        )
    except ValueError:
        return None
    given = [i for i, x in enumerate(leaves) if not is_zero(x)]  # zeros may stand for any part
    alone = given == [i for i in numbers if not is_zero(leaves[i])]
    return [None if is_zero(leaves[i]) else leaves[i] for i in numbers] if alone else None


class custom_vjp(RuleGiven[P, R]):
    """A function with rules for reverse mode; a decorator.

        @custom_vjp
        def f(x, y):
            return sin(x) * y

        def f_fwd(x, y):
            return f(x, y), (cos(x), sin(x), y)

        def f_bwd(res, ct):
            cos_x, sin_x, y = res
            return cos_x * ct * y, sin_x * ct

        f.defvjp(f_fwd, f_bwd)

    The rules run only where `f` is differentiated; forward mode refuses it. What they do is differentiated for higher
    derivatives. The backward pass need not be linear (it may clip gradients, say).

    Args:
        fun: the function, of pytrees of arrays. Arguments by keyword are resolved to positions.
        nondiff_argnums: positions of arguments that are passed on as they are; the forward pass takes them in their
            places, the backward pass before all else.
        nondiff_argnames: the same by name.

    Raises:
        TypeError: `fun` is not a function, or a position is not an integer.
        ValueError: there is no argument of such a position or name.
    """

    _transform = "custom_vjp"
    _no_rules: ClassVar = {"fwd": None, "bwd": None, "optimize_remat": False}
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
        """Give the rules.

        Args:
            fwd: takes what the function takes and returns `(out, residuals)`; residuals are any pytree of arrays.
            bwd: `(*nondiff, residuals, ct) -> cotangents`: `ct` has the structure of the result, the cotangents are a
                tuple with an entry for each argument that is differentiated, of its structure, shapes and dtypes.
                None in place of an argument or of any leaf means zero; integers have None or `float0` zeros.
            symbolic_zeros: `fwd` gets each leaf of the arguments that are differentiated as a `CustomVJPPrimal`
                (`value`, `perturbed`), `bwd` gets cotangents that are known to be zero as `SymbolicZero`.
            optimize_remat: in a program that has no use for the residuals (under `checkpoint`, say), run the function
                itself and not `fwd`. Both are then traced without values where something stages.

        Raises:
            TypeError: a rule is not a function.
            NotImplementedError: `symbolic_zeros` and `optimize_remat` together.
        """
        for name, rule in (("fwd", fwd), ("bwd", bwd)):
            if not callable(rule):
                raise TypeError(f"defvjp of {fun_name(self.fun)}: {name} is a function, got {rule!r}")
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros = bool(symbolic_zeros)
        self.optimize_remat = bool(optimize_remat)
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError("defvjp takes symbolic_zeros=True or optimize_remat=True, not both")

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function's result.

        Raises:
            AttributeError: `defvjp` was never called.
            TypeError: the arguments do not fit the function's signature, or one is not an array; in
                differentiation, a rule returns something of another structure, shape or dtype than it has to, or the
                mode is forward.
            ClosedOverError: the function or a rule closes over what is being differentiated.
        """
        if self.fwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {place(self.fun)}: give it rules with "
                f"{fun_name(self.fun)}.defvjp(fwd, bwd)"
            )
        if is_plain(args, kwargs):
            return self.fun(*args)
        return self._bind(lambda arguments: VjpCall(self, arguments), args, kwargs)
