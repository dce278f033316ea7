"""`jax._src`: the private names that known libraries use; `private_names.py` has the table."""
