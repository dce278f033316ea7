"""`export`: from a jitted function to StableHLO that outlives it."""

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
from corejax_xla_backend._jit.stages import Lowered
from corejax_xla_backend._lowering.context import add_main
from corejax_xla_backend._lowering.locations import without_locations
from corejax_xla_backend._lowering.module import ModuleBuilder
from corejax_xla_backend._physical import physical_program
from corejax_xla_backend.export import checks
from corejax_xla_backend.export.calling import ArgumentNames, is_differentiable
from corejax_xla_backend.export.dims import DimExpr, SymbolicScope
from corejax_xla_backend.export.exported import DisabledSafetyCheck, Exported
from corejax_xla_backend.export.several_devices import Layout, constrained, layout_of
from corejax_xla_backend.export.shapes import aval_at, scope_of_avals

_PLATFORMS = ("cpu", "cuda", "tpu")
_ALIASES = {"gpu": "cuda", "host": "cpu"}


def default_export_platform() -> str:
    """The platform that is exported for where none is named: the default one."""
    return _jaxlib.default_backend()


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """Export a jitted function: as `jax.export.export`.

    Args:
        fun_jit: what `corejax.jit` gave.
        platforms: that it is to run on, of `"cpu"`, `"cuda"` and `"tpu"`; by default `default_export_platform()`.
            None of them has to be there.
        disabled_checks: checks to leave out.

    Returns:
        `(*args, **kwargs) -> Exported`, of arguments or `ShapeDtypeStruct`s; their values do not matter.

    Raises:
        ValueError: the function is not jitted, or a platform is unknown. Of the function that is returned, too: the
            program calls a kernel that another process may not have.
        NotImplementedError: of the function that is returned: the program calls Python, or has ordered effects.
    """
    lower = getattr(fun_jit, "lower", None)
    if not callable(fun_jit) or not callable(lower):
        raise ValueError(f"export takes what corejax.jit gives, export(jit(f))(*args), got {fun_jit!r}")
    targets = _checked_platforms(platforms)
    allowed = tuple(disabled_checks)
    for check in allowed:
        if not isinstance(check, DisabledSafetyCheck):
            raise TypeError(f"export: disabled_checks are made by DisabledSafetyCheck, got {check!r}")

    @api_boundary
    def exporter(*args: Any, **kwargs: Any) -> Exported:
        given = [x for x in tree.tree_leaves((args, kwargs)) if isinstance(x, ShapeDtypeStruct)]
        scope_of_avals(fun_name(fun_jit), given)  # before shapes of two scopes meet in the function
        lowered = lower(*args, **kwargs)
        if not isinstance(lowered, Lowered):
            raise ValueError(f"export takes what corejax.jit gives, export(jit(f))(*args), got {fun_jit!r}")
        if any(isinstance(c, Tracer) for c in lowered.consts):
            raise ValueError(
                f"export of {lowered.name}: it closes over a value that a transformation around it traces, which has "
                "no value to put into an artifact. Make it an argument"
            )
        closed = bind_consts(lowered.jaxpr, [as_array(c) for c in lowered.consts])
        layout = layout_of(lowered.jaxpr, lowered._options, len(lowered.consts))
        return _exported(lowered.name, closed, lowered.in_tree, lowered.out_tree, layout, targets, allowed)

    return exporter


def _checked_platforms(platforms: Sequence[str] | None) -> tuple[str, ...]:
    if platforms is None:
        return (default_export_platform(),)
    if isinstance(platforms, str) or not platforms:
        raise ValueError(f"export: platforms is a sequence of names such as ['cpu', 'cuda'], got {platforms!r}")
    for name in platforms:
        if name not in _PLATFORMS and name not in _ALIASES:
            raise ValueError(f"export: platforms are {', '.join(map(repr, _PLATFORMS))}, got {name!r}")
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
    used = {x for eqn in closed.jaxpr.eqns for x in eqn.invars if type(x) is Var} | set(closed.jaxpr.outvars)
    kept = tuple(v in used for v in closed.jaxpr.invars)
    allowed = [target for check in disabled_checks if (target := check.is_custom_call()) is not None]
    scope = scope_of_avals(name, closed.in_avals)
    if scope is not None and layout.count > 1:
        raise NotImplementedError(
            f"export of {name}: its sizes are symbols, and it is for {layout.count} devices, which divide them; "
            "export it for integer sizes, or for one device"
        )
    whole = constrained(physical_program(closed), layout)  # keys are their numbers, also as arguments and results
    modules = {platform: _module(name, whole, kept, platform, allowed, layout) for platform in platforms}

    def vjp() -> Exported:
        program, *trees = _pullback(name, closed)
        pulled = layout.of_pullback(*_active_and_smooth(closed))
        return _exported(f"vjp({name})", program, *trees, pulled, platforms, disabled_checks)

    exported = Exported(
        fun_name=name,
        in_tree=in_tree,
        in_avals=tuple(closed.in_avals),
        out_tree=out_tree,
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
    """Make the program for some sizes, so that what cannot be is told now.

    Raises:
        ValueError: the sizes cannot be told from the arguments' shapes.
        NotImplementedError: there is no program.
    """
    names = sorted({n for a in exported.in_avals for d in a.shape if isinstance(d, DimExpr) for n in d.variables()})
    for start in (2, 3, 5, 8, 12, 16, 24, 60, 64, 1):
        choices = [
            {n: max(start + i * apart, int(scope.range_of_name(n)[0])) for i, n in enumerate(names)} for apart in (1, 0)
        ]
        sizes = next((found for found in choices if scope.broken(found) is None), None)
        if sizes is not None:
            avals = [aval_at(aval, sizes) for aval in exported.in_avals]
            if all(d > 0 for aval in avals for d in aval.shape):
                exported.specialized(avals, ArgumentNames(exported)())
                return


def _module(
    name: str, closed: ClosedJaxpr, kept: Sequence[bool], platform: str, allowed: Sequence[str], layout: Layout
) -> bytes:
    """The program with its constants, without the user's lines, for one platform; as text if its sizes are symbols."""
    builder = ModuleBuilder(platform, name, layout.devices)
    add_main(builder, closed, kept, embedded=True)
    text = builder.text(f"jit_{name}")
    checks.check_custom_calls(name, text, allowed)
    if scope_of_avals(name, closed.in_avals) is not None:
        return without_locations(text).encode()
    return _jaxlib.to_portable(_jaxlib.parse_module(text))  # type: ignore[no-any-return]


# -- derivatives ---------------------------------------------------------------------------------------------------


def _pullback(name: str, closed: ClosedJaxpr) -> tuple[ClosedJaxpr, Any, Any]:
    """The program `(arguments, cotangents) -> cotangents`, and structures of its arguments and results."""
    active, smooth = _active_and_smooth(closed)
    ct_avals = [tangent_aval(aval) for aval in select_list(smooth, closed.out_avals)]
    fun = jaxpr_as_fun(closed)

    def flat(*args: Any) -> list[Any]:
        primals, cts = split_list(args, [len(active)])
        _, tape = linearize_flat(fun, primals, active, DebugInfo(fun, f"export: vjp of {name}"))
        linear, residuals = tape.to_jaxpr()
        flags = [False] * len(residuals) + [True] * len(linear.invars)
        given = [ct for ct, out in zip(cts, select_list(smooth, tape.outs), strict=True) if out is not None]
        pulled, nonzero = transpose_jaxpr(close_over_consts(linear), flags, [True] * len(given))
        cts_in = iter(inline_closed(pulled, [*residuals, *given]))
        return [
            next(cts_in) if flag else structural.zeros(tangent_aval(aval))
            for flag, aval in zip(nonzero, select_list(active, closed.in_avals), strict=True)
        ]

    program = stage_closed(flat, [*closed.in_avals, *ct_avals])
    args = [*(0 for _ in active), *(0 if flag else None for flag in smooth)]
    in_tree = tree.tree_structure((tuple(args), {}))
    return program, in_tree, tree.tree_structure(tuple(0 if flag else None for flag in active))


def _active_and_smooth(closed: ClosedJaxpr) -> tuple[list[bool], list[bool]]:
    """Whether each argument and each result has tangents."""
    active, smooth = ([is_differentiable(aval) for aval in avals] for avals in (closed.in_avals, closed.out_avals))
    return active, smooth
