"""The plugin's hooks. Discovery imports this module, so everything else is imported inside the hooks."""

from __future__ import annotations

from typing import Any

from corejax.extend import Primitive, hookimpl

# Module -> the names in `corejax` that it defines.
_NAMES = {
    "axis_types": "sharding.auto_axes sharding.explicit_axes",
    "collectives.exchanges": """
        lax.axis_index lax.axis_index_p lax.axis_size lax.pbroadcast lax.ppermute lax.ppermute_p lax.pshuffle
    """,
    "collectives.gathers": """
        lax.all_gather lax.all_gather_invariant_p lax.all_gather_p lax.all_to_all lax.all_to_all_p lax.psum_scatter
        lax.pswapaxes lax.reduce_scatter_p
    """,
    "collectives.ragged": "lax.ragged_all_to_all lax.ragged_all_to_all_p",
    "collectives.reductions": "lax.pmax lax.pmax_p lax.pmean lax.pmin lax.pmin_p lax.psum lax.psum_p",
    "collectives.varying": "lax.pcast lax.pvary_p",
    "contexts": """
        reshard set_mesh sharding.get_abstract_mesh sharding.get_mesh sharding.in_context sharding.reshard
        sharding.set_mesh sharding.use_abstract_mesh sharding.use_mesh
    """,
    "mapping.pmap": "pmap",
    "mapping.shard_map": "shard_map smap",
    "mesh": "make_mesh sharding.AbstractDevice sharding.AbstractMesh sharding.AxisType sharding.Mesh",
    "named_sharding": "NamedSharding sharding.NamedSharding",
    "partition_spec": "P sharding.PartitionSpec",
    "types.explicit": "sharding.split_rules",
    "types.split_rules": "sharding.either_axes sharding.split_axes",
}


@hookimpl
def corejax_declare_settings() -> dict[str, tuple[Any, ...]]:
    """Declare the setting `context_mesh`, the mesh of `set_mesh`, which traces depend on."""

    def parse(given: Any) -> Any:
        from corejax_parallel.contexts import check_mesh

        return check_mesh(given)

    return {"context_mesh": (None, parse, True)}


@hookimpl
def corejax_export_names() -> dict[str, str]:
    """Export collectives to `corejax.lax`, and meshes and shardings to `corejax` and `corejax.sharding`."""
    return {
        name: f"corejax_parallel.{place}:{name.rpartition('.')[2]}"
        for place, names in _NAMES.items()
        for name in names.split()
    }


@hookimpl
def corejax_export_namespaces() -> dict[str, str]:
    """Export the namespaces below `corejax.experimental`."""
    return {
        "experimental.custom_partitioning": "corejax_parallel.partitioning.custom_partitioning",
        "experimental.mesh_utils": "corejax_parallel.mesh_utils",
        "experimental.multihost_utils": "corejax_parallel.multihost_utils",
        "experimental.pjit": "corejax_parallel.earlier_pjit",
        "experimental.shard_map": "corejax_parallel.earlier_shard_map",
    }


@hookimpl
def corejax_provide_examples(primitive: str) -> list[Any]:
    """Return example applications of a primitive of the plugin."""
    from corejax_parallel._examples import examples_of

    return examples_of(primitive)


@hookimpl
def corejax_register_primitives() -> None:
    """Register collectives and mapped functions, with their rules and the types of their parameters."""
    import corejax_parallel.collectives.exchanges
    import corejax_parallel.collectives.gathers
    import corejax_parallel.collectives.ragged
    import corejax_parallel.collectives.reductions
    import corejax_parallel.collectives.varying
    import corejax_parallel.mapping.pmap
    import corejax_parallel.mapping.primitive
    import corejax_parallel.named_sharding
    import corejax_parallel.partitioning.custom_partitioning
    import corejax_parallel.type_texts  # noqa: F401


@hookimpl
def corejax_register_rules(kind: str, primitive: Primitive | None) -> None:
    """Import the translations when the first program is lowered."""
    if kind == "xla_translation":
        import corejax_parallel.translations  # noqa: F401
