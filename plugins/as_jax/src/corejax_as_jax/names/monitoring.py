"""`jax.monitoring`: corejax reports events by `corejax.observe`; listeners that are registered here hear nothing."""

from corejax_as_jax.absent import no_op as clear_event_listeners
from corejax_as_jax.absent import no_op as record_event
from corejax_as_jax.absent import no_op as record_event_duration_secs
from corejax_as_jax.absent import no_op as record_event_time_span
from corejax_as_jax.absent import no_op as record_scalar
from corejax_as_jax.absent import no_op as register_event_duration_secs_listener
from corejax_as_jax.absent import no_op as register_event_listener
from corejax_as_jax.absent import no_op as register_event_time_span_listener
from corejax_as_jax.absent import no_op as register_scalar_listener
from corejax_as_jax.absent import no_op as unregister_event_duration_listener
from corejax_as_jax.absent import no_op as unregister_event_listener
from corejax_as_jax.absent import no_op as unregister_event_time_span_listener
from corejax_as_jax.absent import no_op as unregister_scalar_listener
