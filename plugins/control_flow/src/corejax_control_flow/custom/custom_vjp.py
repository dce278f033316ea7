"""`custom_vjp`: a function whose backward pass its author gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from corejax.extend import fun_name
from corejax.extend.messages import api_boundary
from corejax_control_flow.custom._custom_vjp_call import VjpCall
from corejax_control_flow.custom._user_call import RuleGiven
from corejax_control_flow.custom.open_calls import is_plain
from corejax_control_flow.programs.messages import place


class custom_vjp(RuleGiven):
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
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
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
