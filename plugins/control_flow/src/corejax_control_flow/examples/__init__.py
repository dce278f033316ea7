"""Applications of every primitive of the plugin, for checks of their rules (`corejax verify control_flow`).

Each file makes those of the package of the same name; `by_primitive.py` finds them.
"""
