"""The interpreters give primitives their meanings.

A reader may take them in this order:

- `evaluation`: compute, at the bottom of the stack. `impl_results` checks the results of impl rules; `engine` and
  `checks` find plugins' layers in front of it, which make eager code fast or look for NaNs and leaked tracers.
- `jvp`: push tangents forward; `differentiability` has declarations of no derivative.
- `batching`: one batched application instead of many.
- `staging`: record a program instead of computing.
- `partial_eval`: compute with known values, record the rest on a tape.
- `linearize`: jvp above partial evaluation; its result is a linear tape, or a program if it becomes a pytree.
- `transposition`: walk the tape backward, with cotangents instead of tangents.

Each file has the same parts: the type of the transformation and the content of its tracers; the tracer; the trace with
its `process_primitive`, which unzips the operands, leaves the primitive to the parent if it can, runs the rule and
boxes the results; the transformation of a flat function. `corejax.programs` has the same transformations from program
to program, for rules of primitives with programs as parameters; `corejax.extend` has helpers that register rules.
"""
