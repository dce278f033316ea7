"""XLA as a backend: `backend` is what the plugin provides, `executable` lowers, compiles and runs, `dispatch` is the
fast path of calls.
"""
