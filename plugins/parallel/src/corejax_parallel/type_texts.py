"""Refinements of types from text: `[8@x,4]{V:i}`, as they are in printed programs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corejax.extend import config
from corejax.extend.types import refinement_reader
from corejax_parallel.named_sharding import NamedSharding
from corejax_parallel.partition_spec import PartitionSpec
from corejax_parallel.types.refinement import MeshAxes

_TEXT = re.compile(r"\[(?P<sizes>[^]]*)\](?:\{V:(?P<vma>[^}]*)\})?")
_SIZE = re.compile(r"\w+(?:@(?:(\w+)|\(([\w,\s]+)\)))?")


@refinement_reader.provide
def read_refinement(text: str, earlier: Sequence[MeshAxes]) -> MeshAxes:
    """Read a refinement; the axes of sizes are axes of the context's mesh, or of the last type that named axes.

    Raises:
        ValueError: it is not a refinement's text, or that mesh does not have the axes.
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ValueError(f"`{text}` is not a shape over the axes of a mesh, such as `[8@x,4]` or `[3]{{V:i}}`")
    vma = frozenset(_names(found["vma"])) if found["vma"] else frozenset()
    if "@" not in found["sizes"]:
        return MeshAxes(vma)
    axes = [_names(one or several) for one, several in _SIZE.findall(found["sizes"])]
    mesh = config.context_mesh or next((r.sharding.mesh for r in reversed(earlier) if r.sharding is not None), None)
    if mesh is None or not {name for names in axes for name in names} <= set(mesh.explicit_axes):
        raise ValueError(
            f"`[{found['sizes']}]` names axes of type Explicit of the mesh of the context, which is {mesh}"
        )
    return MeshAxes(vma, NamedSharding(mesh, PartitionSpec(*axes)).explicit_part(len(axes)))


def _names(text: str) -> tuple[str, ...]:
    return tuple([name.strip() for name in text.strip("()").split(",") if name.strip()])
