"""`jax._src.distributed`."""

from types import SimpleNamespace as _SimpleNamespace

global_state = _SimpleNamespace(
    client=None, process_id=0, num_processes=1, service=None, coordinator_address=None, preemption_sync_manager=None
)
