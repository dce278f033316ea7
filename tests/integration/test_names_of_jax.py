"""Public names and signatures beside jax's, in every namespace that both have: what differs says why.

A name of jax's that is not here, and an argument that is, has a reason in one of the tables below; a row that is not
needed any more fails, too. docs/differences.md says the same to users.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import types
import warnings
from typing import Any

import pytest

import corejax
from tests.signatures import PLACEMENT, difference, names_in, public

jax = pytest.importorskip("jax")

NAMESPACES = names_in(
    """
    ad_checkpoint custom_batching custom_derivatives debug distributed dlpack dtypes errors
    example_libraries.optimizers example_libraries.stax experimental
    experimental.buffer_callback experimental.checkify
    experimental.compilation_cache.compilation_cache experimental.custom_partitioning experimental.jet
    experimental.key_reuse experimental.mesh_utils experimental.multihost_utils experimental.ode
    experimental.pjit experimental.random experimental.serialize_executable experimental.shard_map
    experimental.sparse experimental.sparse.linalg
    experimental.topologies export ffi flatten_util image
    lax lax.linalg memory monitoring nn nn.initializers numpy numpy.fft numpy.linalg ops profiler random ref
    scipy.cluster.vq scipy.fft scipy.integrate scipy.interpolate scipy.linalg scipy.ndimage scipy.optimize scipy.signal
    scipy.sparse.linalg scipy.spatial.transform scipy.special scipy.stats sharding stages test_util tree
    tree_util typing
    """
)

MUTABLE = "programs have no values but arrays: references (`corejax.ref`) are threaded through as arrays"
JAXS_OWN = "for jax's own use, or a part of its insides"
HELPER = "a helper of the module's that jax happens not to hide"
GUARDS = "guards of jax's own threads and collector"
TYPES = "types of arrays say nothing of shardings"
LOWERING = "rules of translation are written for `corejax.extend`"
DEPRECATED = "deprecated by jax"

# Namespaces of jax's that are not here.
NO_NAMESPACE = {
    "api_util": JAXS_OWN,
    "cloud_tpu_init": JAXS_OWN,
    "experimental.array_serialization": "`corejax.checkpoints` saves arrays over any devices",
    "experimental.colocated_python": "there are no proxies of devices",
    "experimental.compute_on": "programs run on one kind of device",
    "experimental.control_deps": "hints for compilers of TPUs",
    "experimental.fused": JAXS_OWN,
    "experimental.hijax": MUTABLE,
    "experimental.layout": "arrays have one layout in memory",
    "experimental.profiler": "instructions that compilers of TPUs profiled",
    "experimental.rnn": "kernels of cuDNN",
    "experimental.roofline": "`compiled.cost_analysis()` has the compiler's estimates",
    "experimental.scheduling_groups": "hints for compilers of TPUs",
    "experimental.shard_alike": "`with_sharding_constraint` places both arrays",
    "experimental.source_mapper": "`lowered.as_text(debug_info=True)` has the user's lines",
    "experimental.transfer": "processes exchange arrays by collectives",
    "experimental.xla_metadata": "hints for compilers of TPUs",
    "version": "`corejax.__version__`",
}

# Names that are not here, by namespace; "" is jax itself.
ABSENT = {
    "": {
        JAXS_OWN: "allow_f16_reductions jax2tf_associative_scan_reductions make_user_context softmax_custom_jvp",
        GUARDS: "array_garbage_collection_guard no_execution no_tracing thread_guard",
        TYPES: "auto_pcast remove_size_one_mesh_axis_from_type",
        DEPRECATED: "host_count host_id host_ids",
    },
    "ad_checkpoint": {JAXS_OWN: "Offloadable Recompute Saveable"},
    "custom_derivatives": {JAXS_OWN: "remat_opt_p"},
    "debug": {JAXS_OWN: "DebugEffect OrderedDebugEffect"},
    "example_libraries.optimizers": {
        HELPER: """
            Array InitFn Params ParamsFn State Step UpdateFn Updates map namedtuple partial safe_map safe_zip unzip2 zip
        """
    },
    "example_libraries.stax": {
        "`corejax.nn` has them": """
            elu gelu leaky_relu log_softmax relu selu sigmoid softmax softplus standardize
        """
    },
    "experimental": {MUTABLE: "EArray cur_qdd", JAXS_OWN: "primal_tangent_dtype"},
    "experimental.jet": {
        HELPER: """
            partial register_pytree_node safe_zip tree_flatten tree_structure tree_unflatten treedef_is_leaf unzip2
        """,
        "rules are written for `corejax.experimental.jet.jet_rules`": """
            JetTrace JetTracer ZeroSeries ZeroTerm call_param_updaters def_comp def_deriv deflinear defzero deriv_prop
            fact jet2 jet_fun jet_subtrace linear_prop traceable weakref_lru_cache zero_prop zero_series zero_term
        """,
    },
    "experimental.mesh_utils": {JAXS_OWN: "device_kind_handler_dict"},
    "experimental.multihost_utils": {
        HELPER: "P lru_cache partial safe_zip tree_flatten tree_unflatten",
        JAXS_OWN: """
            global_array_to_host_local_array_impl global_array_to_host_local_array_p gtl_abstract_eval
            host_local_array_to_global_array_impl host_local_array_to_global_array_p ltg_abstract_eval ltg_batcher
        """,
        "a job ends with one of its processes": "ProcessFailureError live_devices reached_preemption_sync_point",
    },
    "experimental.ode": {
        HELPER: """
            abs2 fit_4th_order_polynomial initial_step_size interp_fit_dopri map mean_error_ratio optimal_step_size
            partial promote_dtypes_inexact ravel_first_arg ravel_first_arg_ ravel_pytree runge_kutta_step safe_map
            safe_zip tree_leaves tree_map zip
        """
    },
    "experimental.sparse": {
        "functions are compositions of other primitives": """
            SparseTracer coo_fromdense_p coo_matmat_p coo_matvec_p coo_todense_p csr_fromdense_p csr_matmat_p
            csr_matvec_p csr_todense_p bcoo_dot_general_p bcoo_dot_general_sampled_p bcoo_extract_p bcoo_fromdense_p
            bcoo_sort_indices_p bcoo_spdot_general_p bcoo_sum_duplicates_p bcoo_todense_p bcoo_transpose_p
            bcsr_dot_general_p bcsr_extract_p bcsr_fromdense_p bcsr_todense_p todense_p
        """,
    },
    "experimental.sparse.linalg": {"it is a `custom_linear_solve`": "spsolve_p"},
    "experimental.topologies": {HELPER: "Device"},
    "ffi": {
        LOWERING: "build_ffi_lowering_function ffi_lowering",
        "an error in jax, too: `register_ffi_type` takes the id": "register_ffi_type_id",
    },
    "lax": {"`ppermute` sends": "precv psend", "`sharding_constraint_p` is what it would be": "device_put_p"},
    "sharding": {TYPES: "ManualAxisType"},
    "tree_util": {JAXS_OWN: "default_registry"},
}

# Arguments that differ, by function: what jax has and corejax has not, and the other way round.
SETTING = "a setting's new value is given"
OPERATOR = "it is NumPy's ufunc, with its `out` and `where` that explain what to do instead"
MORE = "takes more than jax's"
REST = "`reduce_axes`, `sum_match`, `concrete`, `_...`: deprecated by jax, or its own"
POSITIONAL = "may be given by name, too"
OTHER_NAME = "the argument has a name of its own"
DIFFERENT = {
    SETTING: """
        default_device default_matmul_precision default_prng_impl legacy_prng_key
        numpy_dtype_promotion numpy_rank_promotion transfer_guard_device_to_device
        transfer_guard_device_to_host transfer_guard_host_to_device
    """,
    OPERATOR: """
        numpy.arctan2 numpy.atan2 numpy.divide numpy.equal numpy.float_power numpy.floor_divide numpy.greater
        numpy.greater_equal numpy.less numpy.less_equal numpy.mod numpy.not_equal numpy.pow numpy.power numpy.remainder
        numpy.true_divide
    """,
    MORE: """
        jit lax.argmax lax.argmin lax.fori_loop lax.map lax.squeeze lax.while_loop pmap
        experimental.multihost_utils.sync_global_devices experimental.sparse.bcoo_sum_duplicates
    """,
    REST: "checkpoint remat export.export grad lax.scan ref.swap value_and_grad vmap",
    POSITIONAL: "lax.optimization_barrier nn.tanh",
    OTHER_NAME: """
        dtypes.canonicalize_dtype dtypes.issubdtype dtypes.itemsize_bits experimental.checkify.checkify
        scipy.special.logit
    """,
    "arrays have one layout, and kernels one version of the interface": "ffi.ffi_call",
    "slices of TPUs": "distributed.initialize",
}


def module(root: str, name: str) -> Any:
    """A namespace; None where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(f"{root}.{name}" if name else root)
        except ImportError:
            found: Any = importlib.import_module(root)
            for part in name.split("."):
                found = getattr(found, part, None)
            return found


def no_placement(mine: Any, wanted: Any) -> str:
    """Which arguments that say where results are to be are missing; `difference` leaves them out."""
    try:
        ours, other = (inspect.signature(f).parameters for f in (mine, wanted))
    except (TypeError, ValueError):
        return ""
    absent = PLACEMENT & other.keys() - ours.keys()
    return f"no {', '.join(absent)}" if absent and not any(p.kind is p.VAR_KEYWORD for p in ours.values()) else ""


def has(namespace: Any, name: str) -> bool:
    """Whether it has a name, one that is imported when it is asked for among them."""
    try:
        getattr(namespace, name)
    except AttributeError:
        return False
    return True


def theirs(name: str) -> list[str]:
    """Public names of a namespace of jax's that are not modules, and not deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [n for n in public(module("jax", name)) if has(module("jax", name), n)]


@pytest.mark.parametrize("name", ["", *sorted(NAMESPACES)])
def test_names(name: str) -> None:
    ours = module("corejax", name)
    assert ours is not None, f"there is no namespace corejax.{name}"
    absent = {n for n in theirs(name) if not has(ours, n)}
    known = [names_in(text) for text in ABSENT.get(name, {}).values()]
    reasons = set().union(*known)
    assert sum(map(len, known)) == len(reasons), "a name has two reasons"
    assert absent - reasons == set(), f"of jax.{name}, without a reason"
    assert reasons - absent == set(), f"of jax.{name}: they are here, or not there any more"


def test_signatures() -> None:
    found = {}
    for name in ["", *NAMESPACES]:
        ours = module("corejax", name)
        for n in theirs(name):
            mine, wanted = getattr(ours, n, None), getattr(module("jax", name), n)
            if mine is not None and not isinstance(wanted, type | types.ModuleType):
                text = difference(mine, wanted) or no_placement(mine, wanted)
                if text:
                    found[f"{name}.{n}".lstrip(".")] = text
    reasons = set().union(*map(names_in, DIFFERENT.values()))
    assert {n: text for n, text in found.items() if n not in reasons} == {}
    assert reasons - set(found) == set(), "the signatures agree"


def test_namespaces() -> None:
    """Those of jax's that are nowhere above are not here, for a reason."""
    for name in NO_NAMESPACE:
        assert module("jax", name) is not None, name
        assert not isinstance(module("corejax", name), types.ModuleType), f"corejax.{name} is here"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for parent in ("", "experimental"):
            for n in dir(module("jax", parent)):
                below = f"{parent}.{n}".lstrip(".")
                if n.startswith("_") or not inspect.ismodule(getattr(module("jax", parent), n, None)):
                    continue
                if inspect.ismodule(module("corejax", below)) or below in NO_NAMESPACE:
                    continue
                assert below in {"lib", "ref", "util"}, f"jax.{below}: no namespace, and no reason"


def test_modules() -> None:
    """Every module of jax's, imported or not, is here or has a reason."""
    known = NAMESPACES | NO_NAMESPACE.keys() | names_in(INSIDES)
    for parent in ("", "experimental"):
        for found in pkgutil.iter_modules(module("jax", parent).__path__):
            name = f"{parent}.{found.name}".lstrip(".")
            if not found.name.startswith("_") and not any(n.startswith(f"{name}.") for n in known):
                assert name in known, f"jax.{name}: no namespace, and no reason"


# Modules that users do not call: jax's own, programs, and other projects that it contains.
INSIDES = """
    collect_profile core experimental.host_callback experimental.jax2tf experimental.mosaic experimental.pallas
    experimental.x64_context extend interpreters jaxlib lib ref tools util
"""

# Names that JAX has from 0.11 or 0.12 on: those that are here, and the others with a reason.
NEWER = """
    export.symbolic_dim_bounds lax.log2 lax.log2_p lax.one_minus_square lax.one_minus_square_p lax.polynomial
    lax.polynomial_p numpy.minmax numpy.top_k profiler.ProfileLine random.Key scipy.special.erfcinv
"""
NEWER_ABSENT = {
    "`jit(inline=True)`": "Inline",
    "`jit(compiler_options=)` takes XLA's own options": "CompilerEffortLevel",
    "`trace` writes files, which `ProfileData` reads": "profiler.ProfileSession profiler.export_profile_data",
    "arrays always hold their sums": "sharding.UnreducedKind",
    "hints for compilers of TPUs": "experimental.overlap experimental.thunky lax.psum_scatter_start",
    GUARDS: "sharding.no_collectives",
}


def test_newer_names() -> None:
    for name in names_in(NEWER):
        parent, _, last = name.rpartition(".")
        assert has(module("corejax", parent), last), name
    for name in set().union(*map(names_in, NEWER_ABSENT.values())):
        parent, _, last = name.rpartition(".")
        assert not has(module("corejax", parent), last), f"{name} is here"


# Attributes of classes, by an instance where the class does not have them: those that jax's has and corejax's not.
ATTRIBUTES: dict[str, dict[str, str]] = {
    "NamedSharding": {},
    "P": {TYPES: "to_ct_spec to_lo to_tangent_spec"},
    "ShapeDtypeStruct": {
        MUTABLE: "is_ref",
        TYPES: "manual_axis_type",
        "arrays have one layout in memory": "format",
    },
    "Array": {"an error in jax, too": "flat"},
    "sharding.Mesh": {},
    "stages.Compiled": {"arrays have one layout in memory": "input_formats output_formats"},
    "stages.Lowered": {},
    "custom_jvp": {},
    "custom_vjp": {},
    "tree_util.PyTreeDef": {
        "treedefs are pickled": "deserialize_using_proto serialize_using_proto",
        JAXS_OWN: "from_iterable_tree from_node_data_and_children walk",
    },
}


def instances() -> dict[str, Any]:
    """One of each class."""
    mesh = corejax.make_mesh((1,), ("a",))
    lowered = corejax.jit(lambda x: x).lower(1.0)
    return {
        "NamedSharding": corejax.NamedSharding(mesh, corejax.P("a")),
        "P": corejax.P("a"),
        "ShapeDtypeStruct": corejax.ShapeDtypeStruct((), "float32"),
        "Array": corejax.device_put(corejax.numpy.ones((1, 1))),
        "sharding.Mesh": mesh,
        "stages.Compiled": lowered.compile(),
        "stages.Lowered": lowered,
        "custom_jvp": corejax.custom_jvp(lambda x: x),
        "custom_vjp": corejax.custom_vjp(lambda x: x),
        "tree_util.PyTreeDef": corejax.tree.structure(0),
    }


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes(name: str) -> None:
    parent, _, last = name.rpartition(".")
    kind, ours = getattr(module("jax", parent), last), instances()[name]
    absent = {n for n in dir(kind) if not n.startswith("_") and not has(ours, n)}
    reasons = set().union(*map(names_in, ATTRIBUTES[name].values()))
    assert absent - reasons == set(), f"of jax.{name}, without a reason"
    assert reasons - absent == set(), "they are here"


def test_what_replaces_names_that_are_not_here() -> None:
    """Reasons that name something of corejax's name something that is."""
    assert callable(corejax.lax.ppermute)
    assert callable(corejax.extend.messages.observe.watching)
    assert callable(corejax.nn.gelu)
    assert corejax.checkpoints.save
    assert corejax.__version__
    assert corejax.P("a", None).unreduced == corejax.P().reduced == frozenset()
    mesh = corejax.make_mesh((1, 1, 1), ("a", "b", "c"))
    spec = corejax.P(("a",), corejax.P.UNCONSTRAINED, None)
    assert corejax.NamedSharding(mesh, spec).replicated_axes == {"b", "c"}
