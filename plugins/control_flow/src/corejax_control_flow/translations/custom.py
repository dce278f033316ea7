"""StableHLO of functions with rules of their own: their programs, in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, Primitive, xla_translations
from corejax_control_flow.custom.custom_jvp_rules import custom_jvp_call_p
from corejax_control_flow.custom.custom_vjp_rules import custom_lin_p, custom_vjp_call_p, no_forward_mode
from corejax_control_flow.custom.custom_vmap import custom_vmap_call_p
from corejax_control_flow.custom.linear_call import linear_call_p
from corejax_control_flow.custom.remat_opt import remat_opt_p


def _inlined(primitive: Primitive, param: str) -> None:
    """Register the translation of a primitive that runs one of its programs."""

    def translation(ctx: Any, in_avals: Any, in_vals: Sequence[Any], **params: Any) -> list[Any]:
        program: ClosedJaxpr = params[param]
        return ctx.inline(program, in_vals)  # type: ignore[no-any-return]

    translation.__name__ = f"{primitive.name}_translation"
    xla_translations.register(primitive, translation)


_inlined(custom_jvp_call_p, "call_jaxpr")
_inlined(custom_vjp_call_p, "call_jaxpr")
_inlined(custom_vmap_call_p, "call_jaxpr")
_inlined(linear_call_p, "callee")
_inlined(remat_opt_p, "fwd_jaxpr")


@xla_translations.register(custom_lin_p)
def custom_lin_translation(ctx: Any, in_avals: Any, in_vals: Sequence[Any], *, name: str, **params: Any) -> list[Any]:
    """Refuses.

    Raises:
        TypeError: always.
    """
    raise no_forward_mode(name)
