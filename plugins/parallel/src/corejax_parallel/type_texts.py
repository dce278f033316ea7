"""Parse refinements of types as they appear in printed programs: `[8@x,4]{V:i}`."""

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
    """Parse a refinement; axes of sizes belong to the context's mesh, or to the mesh of the last type with axes.

    Raises:
        ValueError: the text is not a refinement, or the mesh does not have the axes.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text}` is not a shape over the axes of a mesh, such as `[8@x,4]` or `[3]{{V:i}}`")
    vma = frozenset(_names(match["vma"])) if match["vma"] else frozenset()
    if "@" not in match["sizes"]:
        return MeshAxes(vma)
    axes = [_names(one or several) for one, several in _SIZE.findall(match["sizes"])]
    mesh = config.context_mesh or next((r.sharding.mesh for r in reversed(earlier) if r.sharding is not None), None)
    if mesh is None or not {name for names in axes for name in names} <= set(mesh.explicit_axes):
        raise ValueError(
            f"`[{match['sizes']}]` names axes of type Explicit of the mesh of the context, which is {mesh}"
        )
    return MeshAxes(vma, NamedSharding(mesh, PartitionSpec(*axes)).explicit_part(len(axes)))


def _names(text: str) -> tuple[str, ...]:
    return tuple([name.strip() for name in text.strip("()").split(",") if name.strip()])
