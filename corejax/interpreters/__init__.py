"""The interpreters: what gives primitives a meaning. In the order to read them in:

- `evaluation`: compute now, at the bottom of the stack; `impl_results` checks what impl rules return, `host_programs`
  evaluates programs on NumPy arrays. Layers in front of it: `engine` finds the one of a plugin that makes it fast,
  `checks` finds those of a plugin that look for NaNs and leaked tracers while a setting asks for it.
- `jvp`: push tangents forward; `jvp_helpers` registers rules, `differentiability` says what has no derivative.
- `batching`: one batched application instead of many; `batching_helpers` registers rules, `looping` is for no rule.
- `staging`: record a program instead of running.
- `partial_eval`: compute what is known, record the rest on a tape.
- `linearize`: jvp on partial evaluation, which leaves a linear tape, or a program where it travels as a pytree.
- `transposition`: walk the tape backward, cotangents in place of tangents.
- `jaxpr_transforms` and `partial_eval_jaxpr`: the same from program to program, for the rules of primitives that carry
  programs; in `recomputation` a plugin chooses what is computed again; `splitting` takes equations apart, `lists` flat
  lists, and finds fixed points.
- `call`: every rule of a primitive that calls a program, from one declaration.

Each file is: what it computes and what its tracers hold; the tracer; the trace, whose `process_primitive` is what
happens to one primitive: unzip, pass on what is not needed, run the rule, box; the transformation of a flat function;
helpers for rules. `debug_info` is for messages.
"""
