"""What one call of a `custom_jvp` and one of a `custom_vjp` function share: the user's function on leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import ShapedArray, check_outputs, tree
from corejax_control_flow.custom._arguments import Arguments
from corejax_control_flow.custom.open_calls import Call, Closed, staged


class UserCall(Call):
    """One call of a function with rules of its own, with its arguments.

    Attributes:
        symbolic_zeros: whether the rules are told which tangents are zero.
        out_tree: structure of the result, once the function or one of its rules has run.
        avals_out: types of the result, where the function was staged.
    """

    only_for_derivatives = True

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

    def close(self, avals: Sequence[ShapedArray]) -> Closed:
        """The staged function; the rules run when the equation is differentiated."""
        program, consts = staged(self, avals)
        self.avals_out = program.out_avals
        return Closed(program, consts, self)
