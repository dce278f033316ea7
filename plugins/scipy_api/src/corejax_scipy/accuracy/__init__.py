"""Measure the accuracy of special functions over their whole domains, for the command `corejax accuracy`."""
