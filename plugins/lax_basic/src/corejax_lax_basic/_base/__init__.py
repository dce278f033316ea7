"""What every family needs: numbers of operands, axes and shapes, type rules, scalars, derivatives as rows say them.

`by_name` finds primitives that are defined above, `compiling` their compiled programs; nothing here imports another
package of the plugin.
`samples` is for the examples that each package gives the author's kit.
"""
