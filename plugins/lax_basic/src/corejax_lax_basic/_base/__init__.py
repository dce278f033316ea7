"""What every family needs: how many operands, axes and shapes, kinds of dtype, scalars, constants of programs.

It imports nothing else of this plugin.
"""
