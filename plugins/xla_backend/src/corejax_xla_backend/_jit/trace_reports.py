"""Reports of traces: why a jitted function is traced again, from the differences of signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from corejax.extend import ShapedArray, config
from corejax.extend.messages import observe
from corejax_xla_backend._jit.arguments import StaticKey
from corejax_xla_backend._jit.traces import Signature
from corejax_xla_backend._log import tell

FIRST = "first call"
TRACED_VALUES = "it closes over values of a transformation around it, so that each call traces it"


def reasons(
    new: Signature,
    earlier: Iterable[Signature],
    names: Callable[[], Sequence[str]],
    static_name: Callable[[int | str], str] = repr,
) -> tuple[str, ...]:
    """Say what distinguishes a signature from the nearest of the earlier ones, one phrase for each difference.

    Of equally near ones the last counts. `names` gives the traced arguments' names, `static_name` that of a static one.
    """
    known = list(earlier)
    if not known:
        return (FIRST,)
    named = names()
    every = (_differences(new, old, named, static_name) for old in reversed(known))
    return min(every, key=len) or (TRACED_VALUES,)


def _differences(
    new: Signature, old: Signature, names: Sequence[str], static_name: Callable[[int | str], str]
) -> tuple[str, ...]:
    found = []
    if new.in_tree != old.in_tree:
        found.append(f"structure of the arguments: {new.in_tree}, was {old.in_tree}")
    else:
        for i, (a, b) in enumerate(zip(new.avals, old.avals, strict=True)):
            found.extend(_of_types(names[i] if i < len(names) else f"argument {i}", a, b))
    found.extend(_of_static(new.static, old.static, static_name))
    if new.settings != old.settings:
        found.append(_of_settings(new.settings, old.settings))
    if new.axes != old.axes:
        found.append(f"named axes: {dict(new.axes)}, were {dict(old.axes)}")
    return tuple(found)


def _of_types(name: str, new: ShapedArray, old: ShapedArray) -> list[str]:
    found = []
    if new.shape != old.shape:
        found.append(f"shape of {name}: {new.shape}, was {old.shape}")
    if new.dtype != old.dtype:
        found.append(f"dtype of {name}: {new.dtype.name}, was {old.dtype.name}")
    if new.weak_type != old.weak_type:
        words = ("strong (of an array)", "weak (of a Python scalar)")
        found.append(f"weak type of {name}: {words[new.weak_type]}, was {words[old.weak_type]}")
    return found


def _of_static(new: StaticKey | None, old: StaticKey | None, name: Callable[[int | str], str]) -> list[str]:
    if new == old or new is None or old is None:
        return []
    found = []
    values, earlier_values = ({where: (kind, value) for where, kind, value in key.values} for key in (new, old))
    for key, value in values.items():
        earlier = earlier_values.get(key)
        if earlier is None:
            found.append(f"static argument {name(key)}: {value[1]!r}, was not given")
        elif value != earlier:
            found.append(f"static argument {name(key)}: {_shown(value, earlier)}, was {_shown(earlier, value)}")
    absent = {key: value for key, value in earlier_values.items() if key not in values}
    return found + [f"static argument {name(key)}: not given, was {value[1]!r}" for key, value in absent.items()]


def _shown(value: tuple[type, Any], other: tuple[type, Any]) -> str:
    """A static value; with its type where that is what differs (1 and 1.0 and True)."""
    kind, content = value
    return repr(content) if other[0] is kind else f"{content!r} of type {kind.__name__}"


def _of_settings(new: Sequence[Any], old: Sequence[Any]) -> str:
    changed = [f"{name}={a!r}, was {b!r}" for name, a, b in zip(config.trace_settings, new, old, strict=True) if a != b]
    return f"settings: {', '.join(changed)}"


def report_trace(name: str, why: Sequence[str], ms: float, signature: Signature, *, kept: bool) -> None:
    """Tell observers of a trace, and the log."""
    given = ", ".join(aval.str_short() for aval in signature.avals)
    more = () if kept or TRACED_VALUES in why else (TRACED_VALUES,)
    event = observe.Event("trace", name, (*why, *more), ms, {"signature": f"({given})"})
    tell(event, first=tuple(why) == (FIRST,))
