"""The translation of `call_exported`: the artifact's functions become functions of the calling program."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corejax.extend import ShapedArray, xla_translations
from corejax_xla_backend.export.calling import (
    call_exported_p,
    effectful_call_exported_p,
)


def _translation(ctx: Any, in_avals: Sequence[ShapedArray], in_vals: Sequence[Any], *, exported: Any) -> Any:
    from corejax_xla_backend import _jaxlib  # imported late: jaxlib loads when the first program is lowered
    from corejax_xla_backend.export import templates

    portable = exported.module_for(ctx.platform)
    if exported.nr_devices > 1:
        _check_devices(ctx.module, exported)

    def functions(rename: Callable[[str], str]) -> list[str]:
        def named(name: str) -> str:
            return rename(exported.fun_name if name == "main" else name)

        if exported.uses_global_constants:  # the calling program has symbolic sizes, so its text is a template, too
            texts, meshes = templates.functions_text(portable, named), {}
        else:
            module = _jaxlib.from_portable(portable)
            meshes = _jaxlib.meshes_text(module)
            texts = _jaxlib.functions_text(module, named)
        if exported.nr_devices > 1:
            texts = _renumbered(ctx.module, texts, meshes)
        if ctx.platform == "cpu" and any("@lapack_" in text for text in texts):
            _jaxlib.register_lapack()
        return texts

    symbol = ctx.module.spliced(exported, functions)
    parts = ctx.parts(in_vals)
    kept = [parts[i] for i in exported.module_kept_var_idx]
    return ctx.call_symbol(symbol, kept, exported.out_avals)


def _check_devices(module: Any, exported: Any) -> None:
    """Raise ValueError unless the calling program is over as many devices as the function, outside of shard_map."""
    subject = f"the exported function {exported.fun_name} is for {exported.nr_devices} devices"
    if module.manual is not None:
        raise ValueError(f"{subject} but is called by one of them, in shard_map or pmap; call it outside of these")
    meshes, wanted = module.meshes, exported.nr_devices
    if not meshes.devices and meshes.count in (1, wanted):
        meshes.count = wanted
    if meshes.count != wanted:
        raise ValueError(
            f"{subject} but is called in a program on {meshes.count}; put its arguments on a mesh of {wanted} devices, "
            "by exported.in_shardings_jax(mesh), or call it with corejax.set_mesh(mesh)"
        )


_MESH = re.compile(r"<(@mesh[.\w]*)(?=[,>])")
_CHANNEL = re.compile(r"channel_handle<handle = (\d+), type = \d+>")


def _renumbered(module: Any, texts: Sequence[str], meshes: Mapping[str, str]) -> list[str]:
    """Replace the symbols of meshes and the numbers of channels by those of the calling program."""
    symbols = {symbol: module.meshes.declared(text) for symbol, text in meshes.items()}
    channels: dict[str, int] = {}

    def channel(found: re.Match[str]) -> str:
        if found[1] not in channels:
            channels[found[1]] = module.new_channel()
        return f"channel_handle<handle = {channels[found[1]]}, type = 1>"

    renamed = (_MESH.sub(lambda found: f"<{symbols[found[1]]}", text) for text in texts)
    return [_CHANNEL.sub(channel, text) for text in renamed]


for _p in (call_exported_p, effectful_call_exported_p):
    xla_translations.register(_p, _translation)
