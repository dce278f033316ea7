"""The namespace `corejax.toy`."""

from corejax_toy.ops import twice as twice

times_imported = 0
times_imported += 1
