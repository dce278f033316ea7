"""The byte format of artifacts.

    magic (8) | format (4) | length of the header (4) | header, JSON | blocks | SHA-256 of all preceding bytes (32)

Integers are little-endian. The header describes a list of functions, each the vjp of the preceding one. A function
refers by number to its modules, which are blocks of StableHLO's portable bytes. An artifact contains no Python code. A
reader accepts formats up to its own and ignores unknown entries of the header.
"""

from __future__ import annotations

import ast
import hashlib
import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, dtypes, load_everything
from corejax.extend.types import ValueType
from corejax_xla_backend.export.dims import SymbolicScope, parse
from corejax_xla_backend.export.several_devices import tiles_of_text, tiles_text
from corejax_xla_backend.export.trees import NotKnownHereError, tree_from_json, tree_to_json

MAGIC = b"\x89CJX\r\n\x1a\n"  # as in PNG, converting line ends destroys it, which reveals transfers in text mode
FORMAT = 1
_FIXED = struct.Struct("<8sII")
_DIGEST = hashlib.sha256().digest_size
_EXPORT_AGAIN = "export the function again, or ask for an undamaged copy"


def encode(functions: Sequence[dict[str, Any]], producer: dict[str, str]) -> bytes:
    """Return the bytes of an artifact.

    Args:
        functions: for each function, a dict of the fields of `Exported`.
        producer: versions of the packages that write the artifact.

    Raises:
        ValueError: a structure cannot be serialized.
    """
    blocks: list[bytes] = []
    described = [_described(fields, blocks) for fields in functions]
    content = {"functions": described, "blocks": [len(block) for block in blocks], "producer": producer}
    header = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    data = b"".join([_FIXED.pack(MAGIC, FORMAT, len(header)), header, *blocks])
    return data + hashlib.sha256(data).digest()


def decode(data: bytes) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Parse an artifact and return the functions and producer that `encode` takes.

    Raises:
        ValueError: the bytes are not an artifact, have a newer format, or are truncated or damaged; the message says
            which.
    """
    _check_magic(data)
    if len(data) < _FIXED.size + _DIGEST:
        raise ValueError(f"the artifact is truncated: {len(data)} bytes are too few; {_EXPORT_AGAIN}")
    _, version, length = _FIXED.unpack_from(data)
    if version > FORMAT:
        raise ValueError(
            f"the artifact has format {version}, of a newer version; this corejax-xla-backend reads formats up to "
            f"{FORMAT}. Upgrade corejax-xla-backend, or export with the older version"
        )
    if hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise ValueError(f"the artifact is damaged or truncated: its checksum does not match; {_EXPORT_AGAIN}")
    try:
        start = _FIXED.size + length
        header = json.loads(data[_FIXED.size : start])
        blocks = []
        for size in header["blocks"]:
            blocks.append(data[start : start + size])
            start += size
        return [_function(described, blocks) for described in header["functions"]], dict(header["producer"])
    except NotKnownHereError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise ValueError(f"the artifact's header cannot be read ({type(error).__name__}: {error})") from error


def _check_magic(data: bytes) -> None:
    if data.startswith(MAGIC):
        return
    if MAGIC.startswith(data):
        what = f"{len(data)} bytes" if data else "empty"
    elif data.startswith(b"ML\xefR"):
        what = "a bare StableHLO module in MLIR's bytecode, without types and structures of arguments"
    elif data.startswith(MAGIC[:4]):
        what = "an artifact that was converted in text mode (open files in binary mode)"
    elif b"StableHLO_v" in data:
        what = "apparently an artifact of jax.export; export the function with corejax.export"
    else:
        what = f"data that begins with {bytes(data[:16])!r}"
    raise ValueError(f"not an artifact of corejax.export: {what}")


# -- functions -----------------------------------------------------------------------------------------------------


def _described(fields: dict[str, Any], blocks: list[bytes]) -> dict[str, Any]:
    modules = {}
    for platform, module in fields["modules"].items():
        if module not in blocks:
            blocks.append(module)
        modules[platform] = blocks.index(module)
    return {
        "fun_name": fields["fun_name"],
        "in_tree": tree_to_json(fields["in_structure"]),
        "constraints": None if fields["scope"] is None else list(fields["scope"].constraints),
        "in_avals": [_type(aval) for aval in fields["in_avals"]],
        "out_tree": tree_to_json(fields["out_structure"]),
        "out_avals": [_type(aval) for aval in fields["out_avals"]],
        "platforms": list(fields["platforms"]),
        "modules": modules,
        "unordered_effects": list(fields["unordered_effects"]),
        "disabled_safety_checks": [str(check) for check in fields["disabled_safety_checks"]],
        "calling_convention_version": fields["calling_convention_version"],
        "module_kept_var_idx": list(fields["module_kept_var_idx"]),
    } | _written_layout(fields)


def _written_layout(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the header's entries about shardings, for a function over several devices."""
    if fields["nr_devices"] == 1:
        return {}
    tiles = {name: [tiles_text(each) for each in fields[name]] for name in ("in_tiles", "out_tiles")}
    return {"nr_devices": fields["nr_devices"], **tiles}


def _function(described: dict[str, Any], blocks: Sequence[bytes]) -> dict[str, Any]:
    names = ("platforms", "unordered_effects", "disabled_safety_checks", "module_kept_var_idx")
    fields: dict[str, Any] = {name: tuple(described[name]) for name in names}
    fields["in_structure"], fields["out_structure"] = map(tree_from_json, (described["in_tree"], described["out_tree"]))
    constraints = described.get("constraints")
    scope = fields["scope"] = None if constraints is None else SymbolicScope(constraints)
    for name in ("in_avals", "out_avals"):
        fields[name] = tuple(_aval(written, scope) for written in described[name])
    fields["modules"] = {platform: blocks[number] for platform, number in described["modules"].items()}
    fields["nr_devices"] = int(described.get("nr_devices", 1))
    for name in ("in_tiles", "out_tiles"):
        fields[name] = tuple(map(tiles_of_text, described.get(name, ())))
    fields["fun_name"] = str(described["fun_name"])
    fields["calling_convention_version"] = int(described["calling_convention_version"])
    return fields


def _type(aval: ShapedArray) -> Any:
    if isinstance(aval, ValueType):
        return {
            "value_type": type(aval).__name__,
            "array": _type(ShapedArray(aval.shape, aval.dtype)),
            "fields": {name: _literal(aval, name, value) for name, value in aval.fields.items()},
            "parts": list(map(_type, aval.parts())),
        }
    return [_written_dtype(aval.dtype), [d if isinstance(d, int) else repr(d) for d in aval.shape], aval.weak_type]


def _literal(aval: ValueType, name: str, value: Any) -> str:
    """Return a field of a value type as a Python literal, which `ast.literal_eval` reads."""
    try:
        if ast.literal_eval(repr(value)) == value:
            return repr(value)
    except (ValueError, SyntaxError):  # the text is no literal
        pass
    raise ValueError(
        f"artifacts cannot hold the type {aval.str_short()}: its field {name} is {value!r} of type "
        f"{type(value).__name__}, and fields must be strings, numbers, booleans, None or tuples of these"
    )


def _value_type(written: dict[str, Any], scope: SymbolicScope | None) -> ValueType:
    name, array = written["value_type"], _aval(written["array"], scope)
    if ValueType.named(name) is None:
        load_everything()  # plugins define their types when they load
    cls = ValueType.named(name)
    if cls is None:
        raise NotKnownHereError(
            f"the artifact has values of type {name}, which is not known in this process: install the plugin that "
            "defines it, or first import the module that does"
        )
    aval = cls(array.shape, array.dtype, **{k: ast.literal_eval(text) for k, text in written["fields"].items()})
    parts = tuple(_aval(part, scope) for part in written["parts"])
    if aval.parts() != parts:
        stored, here = (", ".join(part.str_short() for part in each) for each in (parts, aval.parts()))
        raise NotKnownHereError(
            f"the artifact has values of type {aval.str_short()}, stored in ({stored}); in this process the type is "
            f"stored in ({here}): export the function again"
        )
    return aval


def _aval(written: Any, scope: SymbolicScope | None) -> ShapedArray:
    if isinstance(written, dict):
        return _value_type(written, scope)
    name, shape, weak_type = written
    sizes = (int(d) if scope is None or not isinstance(d, str) else parse(d, scope) for d in shape)
    return ShapedArray(tuple(sizes), _dtype(name), bool(weak_type))


def _written_dtype(dtype: Any) -> str | dict[str, Any]:
    """Return the name of a dtype; for keys also their physical dtype and shape, which are checked on loading."""
    if not dtypes.is_extended(dtype):
        return str(dtype.name)
    base, inner = dtypes.element_of(dtype)
    return {"extended": dtypes.short_name(dtype), "base": base.name, "shape": list(inner)}


def _dtype(written: str | dict[str, Any]) -> Any:
    if isinstance(written, str):
        return np.dtype(written)
    name, base, inner = written["extended"], np.dtype(written["base"]), tuple(written["shape"])
    try:
        dtype = dtypes.from_short_name(name)
    except ValueError:
        load_everything()  # plugins register their generators when they load
        dtype = _registered(name)
    if not dtypes.is_extended(dtype) or dtypes.element_of(dtype) != (base, inner):
        raise NotKnownHereError(
            f"the artifact has arrays of {name}, each element {base.name}{list(inner)}; in this process {name} is "
            "another dtype"
        )
    return dtype


def _registered(name: str) -> Any:
    try:
        return dtypes.from_short_name(name)
    except ValueError:
        raise NotKnownHereError(
            f"the artifact has arrays of dtype {name}, which is not known in this process: install the plugin that "
            "defines it, or register the generator of these keys first (random.register_generator)"
        ) from None
