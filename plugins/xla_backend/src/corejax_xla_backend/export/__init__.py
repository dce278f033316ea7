"""`corejax.export`: functions as artifacts, bytes that another process or a later version loads and calls.

Where to read: `exporting` makes an `Exported` (`exported`) of a jitted function, after `checks`; `artifact` is its
bytes, `trees` the structures in them; `calling` is the primitive that calls it, `translation` its StableHLO. `api`
lists what users see.
"""
