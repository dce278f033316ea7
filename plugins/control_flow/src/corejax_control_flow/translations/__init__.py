"""StableHLO of every primitive of the plugin, imported when something is first compiled.

Each file has the name of the file that defines the primitive. `custom.py` has all primitives whose translation is the
program that they call, in place.
"""
