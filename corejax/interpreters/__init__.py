"""The interpreters give primitives their meanings.

A reader may take them in this order:

- `evaluation`: compute, at the bottom of the stack. `impl_results` checks the results of impl rules; `host_programs`
  evaluates programs on NumPy arrays. Two layers in front of it come from plugins: `engine` finds the one that makes
  eager code fast, `checks` finds those that look for NaNs and leaked tracers if a setting asks for it.
- `jvp`: push tangents forward. `jvp_helpers` registers rules; `differentiability` has declarations of no derivative.
- `batching`: one batched application instead of many. `batching_helpers` registers rules; `looping` derives one.
- `staging`: record a program instead of computing.
- `partial_eval`: compute with known values, record the rest on a tape.
- `linearize`: jvp above partial evaluation; its result is a linear tape, or a program if it becomes a pytree.
- `transposition`: walk the tape backward, with cotangents instead of tangents.
- `corejax.programs`: the same transformations from program to program, for rules of primitives with programs as
  parameters. `splitting` splits equations for it; `lists` has its list operations and fixed points.

Each file has the same parts: the type of the transformation and the content of its tracers; the tracer; the trace with
its `process_primitive`, which unzips the operands, leaves the primitive to the parent if it can, runs the rule and
boxes the results; the transformation of a flat function; helpers for rules. `debug_info` is for messages.
"""
