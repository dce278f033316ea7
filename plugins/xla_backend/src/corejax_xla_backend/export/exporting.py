"""`export`: lower a jitted function to an `Exported`, StableHLO that can be serialized."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import (
    ClosedJaxpr,
    DebugInfo,
    Tracer,
    Var,
    as_array,
    bind_consts,
    close_over_consts,
    fun_name,
    inline_closed,
    jaxpr_as_fun,
    split_list,
    stage_closed,
    transpose_jaxpr,
    tree,
)
from corejax.extend.messages import api_boundary
from corejax.extend.programs import select_list
from corejax.extend.transforms import linearize_flat, structural, tangent_aval
from corejax.extend.types import ShapeDtypeStruct
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._lowering.context import add_main
from corejax_xla_backend._lowering.locations import without_locations
from corejax_xla_backend._lowering.module import ModuleBuilder
from corejax_xla_backend._parts import flat_program
from corejax_xla_backend.export import checks
from corejax_xla_backend.export.calling import ArgumentNames, is_differentiable
from corejax_xla_backend.export.dims import SymbolicScope
from corejax_xla_backend.export.exported import DisabledSafetyCheck, Exported
from corejax_xla_backend.export.several_devices import Layout, constrained, layout_of
from corejax_xla_backend.export.shapes import aval_at, scope_of_avals, symbolic_sizes

_PLATFORMS = ("cpu", "cuda", "tpu")
_ALIASES = {"gpu": "cuda", "host": "cpu"}


def default_export_platform() -> str:
    """Return the platform that `export` uses by default: the default backend's."""
    return _jaxlib.default_backend()


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """Export a jitted function, as `jax.export.export` does.

    Args:
        fun_jit: a function returned by `corejax.jit`.
        platforms: the platforms to export for, of `"cpu"`, `"cuda"` and `"tpu"`, which need not be available; by
            default `default_export_platform()`.
        disabled_checks: safety checks to skip.

    Returns:
        A function `(*args, **kwargs) -> Exported` of arrays or `ShapeDtypeStruct`s; only their types matter. It raises
        ValueError if the program calls a kernel that another process may lack, and NotImplementedError if the program
        calls Python or has ordered effects.

    Raises:
        ValueError: the function is not jitted, or a platform is unknown.
        TypeError: a disabled check is not a `DisabledSafetyCheck`.
    """
    lower = getattr(fun_jit, "lower", None)
    if not callable(fun_jit) or not callable(lower):
        raise ValueError(f"export takes a function of corejax.jit, export(jit(f))(*args), got {fun_jit!r}")
    targets = _checked_platforms(platforms)
    allowed = tuple(disabled_checks)
    for check in allowed:
        if not isinstance(check, DisabledSafetyCheck):
            raise TypeError(f"export: disabled_checks must be DisabledSafetyCheck objects, got {check!r}")

    @api_boundary
    def exporter(*args: Any, **kwargs: Any) -> Exported:
        specs = [x for x in tree.tree_leaves((args, kwargs)) if isinstance(x, ShapeDtypeStruct)]
        scope_of_avals(fun_name(fun_jit), specs)  # raises an error before sizes of two scopes meet in the function
        lowered = lower(*args, **kwargs)
        if not isinstance(getattr(lowered, "jaxpr", None), ClosedJaxpr):  # another library's
            raise ValueError(f"export takes a function of corejax.jit, export(jit(f))(*args), got {fun_jit!r}")
        if any(isinstance(c, Tracer) for c in lowered.consts):
            raise ValueError(
                f"export of {lowered.name}: it closes over a value that an outer transformation traces, so there is no "
                "concrete value to put into the artifact. Make it an argument"
            )
        closed = bind_consts(lowered.jaxpr, [as_array(c) for c in lowered.consts])
        layout = layout_of(lowered.jaxpr, lowered._options, len(lowered.consts))
        program = lowered._program
        return _exported(lowered.name, closed, program.in_tree, program.out_tree, layout, targets, allowed)

    return exporter


def export_program(name: str, closed: ClosedJaxpr, platform: str) -> Exported:
    """Export a program on one device as a function of leaves, for one platform.

    Raises:
        ValueError: the program calls a kernel that another process may lack.
        NotImplementedError: the program calls Python or has ordered effects.
    """
    in_tree = tree.tree_structure(((0,) * len(closed.in_avals), {}))
    out_tree = tree.tree_structure((0,) * len(closed.out_avals))
    return _exported(name, closed, in_tree, out_tree, Layout(), (platform,), ())


def _checked_platforms(platforms: Sequence[str] | None) -> tuple[str, ...]:
    if platforms is None:
        return (default_export_platform(),)
    if isinstance(platforms, str) or not platforms:
        raise ValueError(f"export: platforms must be a sequence of names such as ['cpu', 'cuda'], got {platforms!r}")
    for name in platforms:
        if name not in _PLATFORMS and name not in _ALIASES:
            raise ValueError(f"export: platforms must be of {', '.join(map(repr, _PLATFORMS))}, got {name!r}")
    return tuple(dict.fromkeys(_ALIASES.get(name, name) for name in platforms))


def _exported(
    name: str,
    closed: ClosedJaxpr,
    in_tree: Any,
    out_tree: Any,
    layout: Layout,
    platforms: tuple[str, ...],
    disabled_checks: tuple[DisabledSafetyCheck, ...],
) -> Exported:
    checks.check_effects(name, closed)
    flat = flat_program(constrained(closed, layout))
    used = {x for eqn in flat.jaxpr.eqns for x in eqn.invars if type(x) is Var} | set(flat.jaxpr.outvars)
    kept = tuple(v in used for v in flat.jaxpr.invars)
    allowed = [target for check in disabled_checks if (target := check.is_custom_call()) is not None]
    scope = scope_of_avals(name, closed.in_avals)
    if scope is not None and layout.count > 1:
        raise NotImplementedError(
            f"export of {name}: symbolic sizes cannot be partitioned over {layout.count} devices; export the function "
            "for integer sizes, or for one device"
        )
    modules = {platform: _module(name, flat, kept, platform, allowed, layout) for platform in platforms}

    def vjp() -> Exported:
        pullback, vjp_in_tree, vjp_out_tree = _pullback(name, closed)
        vjp_layout = layout.of_pullback(*_active_and_smooth(closed))
        return _exported(f"vjp({name})", pullback, vjp_in_tree, vjp_out_tree, vjp_layout, platforms, disabled_checks)

    exported = Exported(
        fun_name=name,
        in_structure=in_tree,
        in_avals=tuple(closed.in_avals),
        out_structure=out_tree,
        out_avals=tuple(closed.out_avals),
        platforms=platforms,
        modules=modules,
        unordered_effects=checks.unordered_effects(closed),
        disabled_safety_checks=disabled_checks,
        calling_convention_version=1 if layout.count == 1 else 2,
        module_kept_var_idx=tuple(i for i, keep in enumerate(kept) if keep),
        get_vjp=vjp,
        scope=scope,
        nr_devices=layout.count,
        in_tiles=layout.tiles(closed.in_avals),
        out_tiles=layout.tiles(closed.out_avals, of_results=True),
    )
    if scope is not None:
        _try_sizes(exported, scope)
    return exported


def _try_sizes(exported: Exported, scope: SymbolicScope) -> None:
    """Specialise the function to some valid sizes, so that errors show at export and not at the first call.

    Raises:
        ValueError: the arguments' shapes do not determine the sizes.
        NotImplementedError: the program cannot be specialised.
    """
    names = sorted({n for a in exported.in_avals for d in symbolic_sizes(a) for n in d.variables()})
    for start in (2, 3, 5, 8, 12, 16, 24, 60, 64, 1):
        choices = [
            {n: max(start + i * apart, int(scope.range_of_name(n)[0])) for i, n in enumerate(names)} for apart in (1, 0)
        ]
        sizes = next((choice for choice in choices if scope.violated_constraint(choice) is None), None)
        if sizes is not None:
            avals = [aval_at(aval, sizes) for aval in exported.in_avals]
            if all(d > 0 for aval in avals for d in aval.shape):
                exported.specialized(avals, ArgumentNames(exported)())
                return


def _module(
    name: str, closed: ClosedJaxpr, kept: Sequence[bool], platform: str, allowed: Sequence[str], layout: Layout
) -> bytes:
    """Lower the program for a platform, with its constants but without locations; as text if sizes are symbolic."""
    builder = ModuleBuilder(platform, name, layout.devices)
    add_main(builder, closed, kept, embedded=True)
    text = builder.text(f"jit_{name}")
    checks.check_custom_calls(name, text, allowed)
    if scope_of_avals(name, closed.in_avals) is not None:
        return without_locations(text).encode()
    return _jaxlib.to_portable(_jaxlib.parse_module(text))


# -- derivatives ---------------------------------------------------------------------------------------------------


def _pullback(name: str, closed: ClosedJaxpr) -> tuple[ClosedJaxpr, Any, Any]:
    """Return the program `(*arguments, *cotangents) -> cotangents`, and the structures of its arguments and results."""
    active, smooth = _active_and_smooth(closed)
    ct_avals = [tangent_aval(aval) for aval in select_list(smooth, closed.out_avals)]
    fun = jaxpr_as_fun(closed)

    def flat(*args: Any) -> list[Any]:
        primals, cts = split_list(args, [len(active)])
        _, tape = linearize_flat(fun, primals, active, DebugInfo(fun, f"export: vjp of {name}"))
        linear, residuals = tape.to_jaxpr()
        flags = [False] * len(residuals) + [True] * len(linear.invars)
        # Results that do not depend on the arguments have no tangent on the tape, so their cotangents are dropped.
        kept = [ct for ct, out in zip(cts, select_list(smooth, tape.outs), strict=True) if out is not None]
        transposed, nonzero = transpose_jaxpr(close_over_consts(linear), flags, [True] * len(kept))
        cts_in = iter(inline_closed(transposed, [*residuals, *kept]))
        return [
            next(cts_in) if flag else structural.zeros(tangent_aval(aval))
            for flag, aval in zip(nonzero, select_list(active, closed.in_avals), strict=True)
        ]

    program = stage_closed(flat, [*closed.in_avals, *ct_avals])
    args = [*(0 for _ in active), *(0 if flag else None for flag in smooth)]
    in_tree = tree.tree_structure((tuple(args), {}))
    return program, in_tree, tree.tree_structure(tuple(0 if flag else None for flag in active))


def _active_and_smooth(closed: ClosedJaxpr) -> tuple[list[bool], list[bool]]:
    """Return whether each argument, and whether each result, has tangents."""
    active, smooth = ([is_differentiable(aval) for aval in avals] for avals in (closed.in_avals, closed.out_avals))
    return active, smooth
