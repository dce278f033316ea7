"""`xla_call`, the higher-order primitive behind `jit`: a program compiled as one."""

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
    doc="Call a program that is compiled as one: what `jit` stages. Params: call_jaxpr, name, backend; or options.",
)


@impl_rules.register(xla_call_p, device=True)
def xla_call_impl(
    *args: Array,
    call_jaxpr: ClosedJaxpr,
    name: str,
    backend: str | None,
    options: CompileOptions = DEFAULT_OPTIONS,
) -> list[Array]:
    """Compile (once for each program) and run: by the backend of the program around it, if one runs."""
    from corejax_xla_backend._programs import interpret, interpreting, run_where_they_are

    if interpreting():
        return interpret(call_jaxpr, args)
    device = options.device if options.device is not None else next(iter(options.devices), None)
    target = backends.inside(backend) if device is None else Target(backends.of_device(device), device.platform)
    return run_where_they_are(call_jaxpr, args, name, target, options)[0]


def _renamed(change: CallChange, params: dict[str, Any]) -> dict[str, Any]:
    """`jvp(f)`, and so on: what was made of a program is part of its name."""
    if change.kind in ("jvp", "vmap", "transpose"):
        return {"name": f"{change.kind}({params['name']})"}
    return {}


# In StableHLO it is a function that is called, so that jit in jit is one function however often it is called.
defcall(xla_call_p, "call_jaxpr", update=_renamed, without=("impl",))
