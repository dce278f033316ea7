"""The axes of a mesh in the types of values.

- `refinement`: `MeshAxes`, the refinement of types that the kernel carries; `with_vma` and `with_sharding` make types.
- `vma`: manual axes, along which values may differ.
- `explicit`: axes of type Explicit, over which arrays are split; `split_rules` has the rules of primitives.
"""
