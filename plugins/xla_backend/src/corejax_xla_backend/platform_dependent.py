"""`platform_dependent`: a choice between functions by the platform that a program is compiled for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, defzero, xla_translations
from corejax.extend.devices import TranslationValue
from corejax.extend.messages import api_boundary
from corejax.extend.transforms import in_context
from corejax_xla_backend._devices import default_backend
from corejax_xla_backend._lowering.context import TranslationContext
from corejax_xla_backend._lowering.types import KnownValue

_ALIASES = {"gpu": "cuda"}


def _index(platforms: tuple[str, ...], has_default: bool, platform: str) -> int:
    """Return the index of a platform's branch: its own, else the default, which is the last one.

    Raises:
        NotImplementedError: the platform has no branch, and there is no default.
    """
    if platform in platforms:
        return platforms.index(platform)
    if has_default:
        return len(platforms)
    raise NotImplementedError(
        f"platform_dependent: there is a function for {', '.join(platforms)}, but none for platform {platform!r}; "
        "pass one, or default="
    )


def _platform_index(platforms: tuple[str, ...], has_default: bool) -> np.ndarray[Any, Any]:
    return np.asarray(_index(platforms, has_default, default_backend()), np.int32)


platform_index_p = Primitive(
    "platform_index",
    impl=_platform_index,
    abstract_eval=lambda platforms, has_default: ShapedArray((), np.dtype(np.int32)),
    doc="The position of the platform that a program runs on, int32. Params: platforms, has_default.",
)
defzero(platform_index_p)


@xla_translations.register(platform_index_p)
def platform_index_translation(
    ctx: TranslationContext, in_avals: Any, in_vals: Any, *, platforms: tuple[str, ...], has_default: bool
) -> TranslationValue:
    """Return the index as a known constant, so that a conditional on it lowers to one branch."""
    number = _index(platforms, has_default, ctx.platform)
    index = np.int32(number)
    return KnownValue(ctx.constant(index), index)


@api_boundary
def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """Call one of several functions, chosen by the platform that the program is compiled for.

    All functions are traced, but only the platform's own is compiled, so that the others may use primitives that the
    platform lacks. Outside of `jit`, the function of the default platform is called directly.

    Args:
        *args: the function's arguments.
        default: the function for all other platforms.
        **per_platform: functions by platform (`cpu=`, `cuda=`), with results of one structure and type.

    Returns:
        The function's result.

    Raises:
        TypeError: an argument is not a function.
        ValueError: no function is passed.
        NotImplementedError: no function is passed for the platform.
    """
    functions = {_ALIASES.get(name, name): fun for name, fun in per_platform.items()}
    branches = [*functions.values(), *([default] if default is not None else [])]
    if not branches:
        raise ValueError("platform_dependent: pass a function for a platform, such as cpu=f, or default=f")
    for name, fun in [*per_platform.items(), ("default", default)]:
        if not callable(fun) and (name != "default" or fun is not None):
            raise TypeError(f"platform_dependent: {name} must be a function, got {fun!r} of type {type(fun).__name__}")
    platforms, has_default = tuple(functions), default is not None
    if not in_context():
        return branches[_index(platforms, has_default, default_backend())](*args)
    if len(branches) == 1 and has_default:
        return branches[0](*args)
    from corejax import lax

    index = platform_index_p.bind(platforms=platforms, has_default=has_default)
    if len(branches) == 1:
        branches = [*branches, *branches]  # `switch` needs two; the index raises an error on other platforms
    return lax.switch(index, branches, *args)
