"""Reports of traces: differences of signatures explain why a jitted function is traced again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from corejax.extend import ClosedJaxpr, Jaxpr, JaxprEqn, ShapedArray, config
from corejax.extend.messages import describe_source, observe
from corejax_xla_backend._jit.arguments import StaticKey
from corejax_xla_backend._jit.traces import Signature
from corejax_xla_backend._log import report

FIRST = "first call"
TRACED_VALUES = "it closes over values of a transformation around it, so that each call traces it"


def reasons(
    new: Signature,
    earlier: Iterable[Signature],
    names: Callable[[], Sequence[str]],
    static_name: Callable[[int | str], str] = repr,
) -> tuple[str, ...]:
    """Describe how a signature differs from the nearest earlier one, with one phrase for each difference.

    Args:
        new: the signature.
        earlier: the earlier signatures, oldest first; the latest wins if several are equally near.
        names: returns the names of the traced arguments' leaves.
        static_name: returns the name of a static argument, from its position or keyword.
    """
    signatures = list(earlier)
    if not signatures:
        return (FIRST,)
    argument_names = names()
    candidates = (_differences(new, old, argument_names, static_name) for old in reversed(signatures))
    return min(candidates, key=len) or (TRACED_VALUES,)


def _differences(
    new: Signature, old: Signature, names: Sequence[str], static_name: Callable[[int | str], str]
) -> tuple[str, ...]:
    phrases = []
    if new.in_tree != old.in_tree:
        phrases.append(f"structure of the arguments: {new.in_tree}, was {old.in_tree}")
    else:
        for i, (a, b) in enumerate(zip(new.avals, old.avals, strict=True)):
            phrases.extend(_type_differences(names[i] if i < len(names) else f"argument {i}", a, b))
    phrases.extend(_static_differences(new.static, old.static, static_name))
    if new.settings != old.settings:
        phrases.append(_setting_differences(new.settings, old.settings))
    if new.axes != old.axes:
        phrases.append(f"named axes: {dict(new.axes)}, were {dict(old.axes)}")
    return tuple(phrases)


def _type_differences(name: str, new: ShapedArray, old: ShapedArray) -> list[str]:
    phrases = []
    if new.shape != old.shape:
        phrases.append(f"shape of {name}: {new.shape}, was {old.shape}")
    if new.dtype != old.dtype:
        phrases.append(f"dtype of {name}: {new.dtype.name}, was {old.dtype.name}")
    if new.weak_type != old.weak_type:
        words = ("strong (of an array)", "weak (of a Python scalar)")
        phrases.append(f"weak type of {name}: {words[new.weak_type]}, was {words[old.weak_type]}")
    return phrases


def _static_differences(new: StaticKey | None, old: StaticKey | None, name: Callable[[int | str], str]) -> list[str]:
    if new == old or new is None or old is None:
        return []
    phrases = []
    values, earlier_values = ({where: (kind, value) for where, kind, value in key.values} for key in (new, old))
    for key, value in values.items():
        earlier = earlier_values.get(key)
        if earlier is None:
            phrases.append(f"static argument {name(key)}: {value[1]!r}, was not given")
        elif value != earlier:
            phrases.append(
                f"static argument {name(key)}: {_static_repr(value, earlier)}, was {_static_repr(earlier, value)}"
            )
    absent = {key: value for key, value in earlier_values.items() if key not in values}
    return phrases + [f"static argument {name(key)}: not given, was {value[1]!r}" for key, value in absent.items()]


def _static_repr(value: tuple[type, Any], other: tuple[type, Any]) -> str:
    """Return the text of a static value, with its type if the other value's type differs (1, 1.0 and True)."""
    kind, content = value
    return repr(content) if other[0] is kind else f"{content!r} of type {kind.__name__}"


def _setting_differences(new: Sequence[Any], old: Sequence[Any]) -> str:
    values, earlier = dict(new), dict(old)
    both = [(name, values.get(name, d), earlier.get(name, d)) for name, d in config.trace_settings.items()]
    return "settings: " + ", ".join(
        f"{name}={value!r}, was {before!r}" for name, value, before in both if value != before
    )


LAYERS = 20  # equal layers that are worth a scan


def unrolled_layers(jaxpr: Jaxpr) -> str:
    """Return a sentence that suggests `scan` if a program has at least 20 equal runs of equations, else ""."""
    numbers: dict[Any, int] = {}
    kinds = np.array([numbers.setdefault(_kind(eqn), len(numbers)) for eqn in jaxpr.eqns], np.int64)
    best = (0, 0, 0)  # equations in all layers, equations of a layer, the first equation
    for size in range(2, len(kinds) // LAYERS + 1):
        ends = np.flatnonzero(np.concatenate([[True], kinds[size:] != kinds[:-size], [True]]))
        longest = int(np.argmax(np.diff(ends)))
        length = int(ends[longest + 1] - ends[longest] - 1) + size
        if length // size >= LAYERS and length // size * size > best[0]:
            best = (length // size * size, size, int(ends[longest]))
    total, size, first = best
    if not total:
        return ""
    return (
        f"{total // size} equal runs of {size} equations, from {describe_source(jaxpr.eqns[first].source_info)} on: "
        "lax.scan over stacked parameters traces and compiles one of them"
    )


def _kind(eqn: JaxprEqn) -> tuple[Any, ...]:
    """Return a key that equations with the same operation on the same types share."""
    params = tuple((name, _outline(value)) for name, value in eqn.params.items())
    return eqn.primitive, tuple(x.aval for x in eqn.invars), tuple(v.aval for v in eqn.outvars), params


_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def _outline(value: Any) -> Any:
    """Return the numbers of equations in place of a program, and the text of any other parameter."""
    if isinstance(value, tuple | list):
        return tuple(map(_outline, value))
    jaxpr = value.jaxpr if isinstance(value, ClosedJaxpr) else value
    return len(jaxpr.eqns) if isinstance(jaxpr, Jaxpr) else _ADDRESS.sub("", repr(value))


def report_trace(name: str, why: Sequence[str], ms: float, signature: Signature, jaxpr: Jaxpr, *, kept: bool) -> None:
    """Report a trace to the observers and the log; `jaxpr` is the program."""
    arguments = ", ".join(aval.str_short() for aval in signature.avals)
    more = () if kept or TRACED_VALUES in why else (TRACED_VALUES,)
    layers = {"unrolled": text} if (text := unrolled_layers(jaxpr)) else {}
    event = observe.Event("trace", name, (*why, *more), ms, {"signature": f"({arguments})"} | layers)
    report(event, first=tuple(why) == (FIRST,))
