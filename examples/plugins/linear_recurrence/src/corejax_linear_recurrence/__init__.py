"""Linear recurrences by a kernel in C; see `corejax.linear_recurrence`."""
