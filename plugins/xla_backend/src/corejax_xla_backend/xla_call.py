"""`xla_call`, the higher-order primitive behind `jit`: a call of a program that is compiled as a unit."""

from __future__ import annotations

from typing import Any

from corejax.extend import Array, ClosedJaxpr, Primitive, backends, defcall, impl_rules, inlining
from corejax.extend.devices import DEFAULT_OPTIONS, CompileOptions, Target
from corejax.extend.programs import CallChange

xla_call_p = Primitive(
    "xla_call",
    multiple_results=True,
    tags=("higher_order",),
    decomposition=inlining("call_jaxpr"),
    doc="Call a program that is compiled as a unit (`jit`). Params: call_jaxpr, name, backend, and optionally options.",
)


@impl_rules.register(xla_call_p, device=True)
def xla_call_impl(
    *args: Array,
    call_jaxpr: ClosedJaxpr,
    name: str,
    backend: str | None,
    options: CompileOptions = DEFAULT_OPTIONS,
) -> list[Array]:
    """Compile a program once and run it, by the backend of the enclosing program if one runs."""
    from corejax_xla_backend._programs import interpret, interpreting, run_where_they_are

    if interpreting():
        return interpret(call_jaxpr, args)
    device = options.device if options.device is not None else next(iter(options.devices), None)
    target = backends.inside(backend) if device is None else Target(backends.of_device(device), device.platform)
    return run_where_they_are(call_jaxpr, args, name, target, options)[0]


def _renamed(change: CallChange, params: dict[str, Any]) -> dict[str, Any]:
    """Return the new name of a transformed program, such as `jvp(f)`."""
    if change.kind in ("jvp", "vmap", "transpose"):
        return {"name": f"{change.kind}({params['name']})"}
    return {}


# In StableHLO the program is a function, so that a jitted function inside another is lowered once for all its calls.
defcall(xla_call_p, "call_jaxpr", update=_renamed, without=("impl",))
