"""`platform_dependent`: a function that is another one on each platform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, xla_translations
from corejax.extend.devices import TranslationValue
from corejax.extend.messages import api_boundary
from corejax.extend.transforms import in_context
from corejax_xla_backend._devices import default_backend
from corejax_xla_backend._lowering.context import TranslationContext
from corejax_xla_backend._lowering.types import KnownValue

_ALIASES = {"gpu": "cuda"}


def _index(platforms: tuple[str, ...], has_default: bool, platform: str) -> int:
    """Which branch a platform has: its own, or the default, which is the last one.

    Raises:
        NotImplementedError: neither is there.
    """
    if platform in platforms:
        return platforms.index(platform)
    if has_default:
        return len(platforms)
    raise NotImplementedError(
        f"platform_dependent: there is a function for {', '.join(platforms)}, and none for platform {platform!r}; "
        "give one, or default="
    )


def _platform_index(platforms: tuple[str, ...], has_default: bool) -> np.ndarray[Any, Any]:
    return np.asarray(_index(platforms, has_default, default_backend()), np.int32)


platform_index_p = Primitive(
    "platform_index",
    impl=_platform_index,
    abstract_eval=lambda platforms, has_default: ShapedArray((), np.dtype(np.int32)),
    doc="The position of the platform that a program runs on, int32. Params: platforms, has_default.",
)


@xla_translations.register(platform_index_p)
def platform_index_translation(
    ctx: TranslationContext, in_avals: Any, in_vals: Any, *, platforms: tuple[str, ...], has_default: bool
) -> TranslationValue:
    """A constant; a conditional on it is one of its branches."""
    number = _index(platforms, has_default, ctx.platform)
    index = np.int32(number)
    return KnownValue(ctx.constant(index), index)


@api_boundary
def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """One of several functions, chosen by the platform that the program is compiled for.

    All are traced; only the platform's own is compiled for it, so that the others may have primitives that it lacks.
    Outside of `jit` it is the function of the default platform, called as it is.

    Args:
        args: what the function is called with.
        default: the function for the other platforms.
        per_platform: functions by platform (`cpu=`, `cuda=`), with results of one structure and type.

    Returns:
        The function's result.

    Raises:
        TypeError: one of them is not a function.
        ValueError: there is none.
        NotImplementedError: there is none for the platform.
    """
    functions = {_ALIASES.get(name, name): fun for name, fun in per_platform.items()}
    branches = [*functions.values(), *([default] if default is not None else [])]
    if not branches:
        raise ValueError("platform_dependent: give a function for a platform, cpu=f say, or default=f")
    for name, fun in [*per_platform.items(), ("default", default)]:
        if not callable(fun) and (name != "default" or fun is not None):
            raise TypeError(f"platform_dependent: {name} is a function, got {fun!r} of type {type(fun).__name__}")
    platforms, has_default = tuple(functions), default is not None
    if not in_context():
        return branches[_index(platforms, has_default, default_backend())](*args)
    if len(branches) == 1 and has_default:
        return branches[0](*args)
    from corejax import lax

    index = platform_index_p.bind(platforms=platforms, has_default=has_default)
    if len(branches) == 1:
        branches = [*branches, *branches]  # the index refuses other platforms
    return lax.switch(index, branches, *args)
