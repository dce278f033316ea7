"""Functions mapped over the devices of a mesh: `shard_map`, `smap`, `pmap`."""
