"""`corejax.export`: serialize functions to artifacts, bytes that another process or a later version loads and calls.

`exporting` converts a jitted function to an `Exported` (`exported`), with the `checks`. `artifact` converts an
`Exported` to bytes and back, and `trees` the pytree structures in it. `calling` has the primitive that calls an
exported function, and `translation` its StableHLO. `dims`, `bounds`, `shapes` and `templates` implement symbolic
sizes, and `several_devices` shardings. `api` lists the public names.
"""
