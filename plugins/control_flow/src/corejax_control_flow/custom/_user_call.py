"""Base classes of functions with custom rules, and of one call of a `custom_jvp` or `custom_vjp` function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeVar

from corejax.extend import ClosedJaxpr, ShapedArray, fun_name, tree
from corejax.extend.transforms import BatchTrace, check_outputs
from corejax_control_flow.custom._arguments import Arguments, Parameters
from corejax_control_flow.custom.open_calls import BatchedCall, Call, Closed, bind_call, staged

P = ParamSpec("P")
R = TypeVar("R")

_FORWARDED = {"def_vmap", "defjvp", "defjvps", "defvjp"}


class CustomRuleFunction(Generic[P, R]):
    """A function with custom rules.

    Decorators nest: methods that define rules (`defjvp`, say) are forwarded to the inner decorated function.

    Attributes:
        fun: the function.
        symbolic_zeros: True if the rules receive symbolic zeros.
        nondiff_argnums: positions of the arguments that are not differentiated.
    """

    _transform: ClassVar[str]  # name of the decorator
    _no_rules: ClassVar[Mapping[str, Any]]  # attributes for the rules, with their values before rules are defined

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        if not callable(fun):
            raise TypeError(f"{self._transform} takes a function, got {fun!r} of type {type(fun).__name__}")
        functools.update_wrapper(self, fun)
        vars(self).update(self._no_rules)  # `fun` may have custom rules as well, which `update_wrapper` copies
        self.fun = fun
        self.symbolic_zeros = False
        self._parameters = Parameters(fun, nondiff_argnums, nondiff_argnames)
        self.nondiff_argnums = self._parameters.nondiff

    if not TYPE_CHECKING:  # hidden from type checkers, so that they report misspelt names

        def __getattr__(self, name: str) -> Any:
            if name in _FORWARDED and "fun" in self.__dict__:
                return getattr(self.fun, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<{self._transform} {fun_name(self.fun)}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        raise NotImplementedError

    def _bind(self, make: Callable[[Arguments], UserCall], args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        """Run or stage the call that `make` returns for the arguments."""
        leaves: list[Any] = []
        arguments = Arguments(self._parameters.positional(args, kwargs), self.nondiff_argnums, leaves)
        arguments.check(self._transform, self.fun, leaves)
        call = make(arguments)
        outs = bind_call(call, leaves)
        out: R = tree.tree_unflatten(call.out_tree, outs)
        return out


class UserCall(Call):
    """One call of a function with custom rules, with its arguments.

    Attributes:
        param: name of the primitive's parameter that holds the rule.
        batched_call: class of the call under `vmap`.
        symbolic_zeros: True if the rules receive symbolic zeros.
        out_tree: structure of the result, set when the function or one of its rules has run.
        avals_out: types of the result, set when the function was staged.
    """

    only_for_derivatives = True
    param: str
    batched_call: type[BatchedCall]

    def __init__(self, fun: Any, symbolic_zeros: bool, arguments: Arguments) -> None:
        self.fun = fun
        self.symbolic_zeros = symbolic_zeros
        self.arguments = arguments
        self.out_tree: Any = None
        self.avals_out: list[ShapedArray] | None = None

    def rules(self) -> tuple[Any, ...]:
        """Return the user's functions and the options of their rules."""
        raise NotImplementedError

    def same_as(self, other: UserCall, same: Callable[[Any, Any], bool]) -> bool:
        """Return whether another call has the same function, rules and nondifferentiated arguments."""
        return (
            all(x is y for x, y in zip(self.rules(), other.rules(), strict=True))
            and (self.out_tree, self.avals_out) == (other.out_tree, other.avals_out)
            and self.arguments.same_as(other.arguments, same)
        )

    def run(self, *leaves: Any) -> list[Any]:
        """Run the function on leaves."""
        outs, self.out_tree = tree.tree_flatten(self.fun(*self.arguments.unflatten(leaves)))
        check_outputs(self.fun, outs, self.out_tree)
        return outs

    def params(self, program: ClosedJaxpr | None, rule: Any, num_consts: int) -> dict[str, Any]:
        """Return the parameters of the equation."""
        return {
            "call_jaxpr": program,
            "name": fun_name(self.fun),
            "num_consts": num_consts,
            "symbolic_zeros": self.symbolic_zeros,
            self.param: rule,
        }

    def batched(self, trace: BatchTrace, dims: list[int | None]) -> BatchedCall:
        """Return the call on batches."""
        return self.batched_call(self, trace, dims)

    def close(self, avals: Sequence[ShapedArray]) -> Closed:
        """Stage the function; the rules run when the equation is differentiated."""
        program, consts = staged(self, avals)
        self.avals_out = program.out_avals
        return Closed(program, consts, self)
