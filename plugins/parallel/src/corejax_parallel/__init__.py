"""Named axes and collectives, pmap, meshes, shardings, shard_map, several processes."""
