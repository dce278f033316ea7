"""What functions with rules of their own share, and what one call of a `custom_jvp` or `custom_vjp` function is."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from corejax.extend import ClosedJaxpr, ShapedArray, fun_name, tree
from corejax.extend.transforms import BatchTrace, check_outputs
from corejax_control_flow.custom._arguments import Arguments, Parameters
from corejax_control_flow.custom.open_calls import BatchedCall, Call, Closed, bind_call, staged

P = ParamSpec("P")
R = TypeVar("R")

_FORWARDED = {"def_vmap", "defjvp", "defjvps", "defvjp"}


class RuleGiven(Generic[P, R]):
    """A function with rules, around another one perhaps, whose rules are given through the outer one as well.

    Attributes:
        fun: the function.
        symbolic_zeros: whether the rules see which tangents are zero.
        nondiff_argnums: positions of the arguments that are not differentiated.
    """

    _transform: str  # the decorator's name
    _no_rules: Mapping[str, Any]  # attributes for the rules, before they are given

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        if not callable(fun):
            raise TypeError(f"{self._transform} takes a function, got {fun!r} of type {type(fun).__name__}")
        functools.update_wrapper(self, fun)
        vars(self).update(self._no_rules)  # `fun` may have rules of its own, which `update_wrapper` copies
        self.fun = fun
        self.symbolic_zeros = False
        self._parameters = Parameters(fun, nondiff_argnums, nondiff_argnames)
        self.nondiff_argnums = self._parameters.nondiff

    if not TYPE_CHECKING:  # so that type checkers report misspelt names

        def __getattr__(self, name: str) -> Any:
            if name in _FORWARDED and "fun" in self.__dict__:
                return getattr(self.fun, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<{self._transform} {fun_name(self.fun)}>"

    def _bind(self, make: Callable[[Arguments], UserCall], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run or record the call that `make` returns for the arguments."""
        leaves: list[Any] = []
        arguments = Arguments(self._parameters.positional(args, kwargs), self.nondiff_argnums, leaves)
        arguments.check(self._transform, self.fun, leaves)
        call = make(arguments)
        outs = bind_call(call, leaves)
        return tree.tree_unflatten(call.out_tree, outs)


class UserCall(Call):
    """One call of a function with rules of its own, with its arguments.

    Attributes:
        param: the parameter with the rule.
        batched_call: class of such a call on batches.
        symbolic_zeros: whether the rules see which tangents are zero.
        out_tree: structure of the result, once the function or one of its rules has run.
        avals_out: types of the result, where the function was staged.
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
        """The user's functions, and what they are told."""
        raise NotImplementedError

    def same_as(self, other: UserCall, same: Callable[[Any, Any], bool]) -> bool:
        """Whether another call has the same function, the same rules and the same arguments, but for arrays."""
        return (
            all(x is y for x, y in zip(self.rules(), other.rules(), strict=True))
            and (self.out_tree, self.avals_out) == (other.out_tree, other.avals_out)
            and self.arguments.same_as(other.arguments, same)
        )

    def run(self, *leaves: Any) -> list[Any]:
        """The function."""
        outs, self.out_tree = tree.tree_flatten(self.fun(*self.arguments.whole(leaves)))
        check_outputs(self.fun, outs, self.out_tree)
        return outs

    def params(self, program: ClosedJaxpr | None, rule: Any, num_consts: int) -> dict[str, Any]:
        """The program and its rule, with what they have besides."""
        return {
            "call_jaxpr": program,
            "name": fun_name(self.fun),
            "num_consts": num_consts,
            "symbolic_zeros": self.symbolic_zeros,
            self.param: rule,
        }

    def batched(self, trace: BatchTrace, dims: list[int | None]) -> BatchedCall:
        """The call on batches."""
        return self.batched_call(self, trace, dims)

    def close(self, avals: Sequence[ShapedArray]) -> Closed:
        """The staged function; the rules run when the equation is differentiated."""
        program, consts = staged(self, avals)
        self.avals_out = program.out_avals
        return Closed(program, consts, self)
