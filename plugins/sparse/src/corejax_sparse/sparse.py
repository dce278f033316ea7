"""`corejax.experimental.sparse`: sparse arrays, with the API of `jax.experimental.sparse`."""

from corejax_sparse import linalg
from corejax_sparse._base import (
    CuSparseEfficiencyWarning,
    JAXSparse,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
)
from corejax_sparse.bcoo import BCOO
from corejax_sparse.bcoo import fromdense as bcoo_fromdense
from corejax_sparse.bcsr import BCSR
from corejax_sparse.bcsr import broadcast_in_dim as bcsr_broadcast_in_dim
from corejax_sparse.bcsr import concatenate as bcsr_concatenate
from corejax_sparse.bcsr import dot_general as bcsr_dot_general
from corejax_sparse.bcsr import extract as bcsr_extract
from corejax_sparse.bcsr import fromdense as bcsr_fromdense
from corejax_sparse.bcsr import sum_duplicates as bcsr_sum_duplicates
from corejax_sparse.bcsr import todense as bcsr_todense
from corejax_sparse.convolution import conv_general_dilated as bcoo_conv_general_dilated
from corejax_sparse.creation import empty, eye, random_bcoo, todense
from corejax_sparse.derivatives import grad, jacfwd, jacobian, jacrev, value_and_grad
from corejax_sparse.gathers import gather as bcoo_gather
from corejax_sparse.layout import extract as bcoo_extract
from corejax_sparse.layout import sort_indices as bcoo_sort_indices
from corejax_sparse.layout import sum_duplicates as bcoo_sum_duplicates
from corejax_sparse.layout import todense as bcoo_todense
from corejax_sparse.layout import update_layout as bcoo_update_layout
from corejax_sparse.matrices import (
    COO,
    CSC,
    CSR,
    coo_fromdense,
    coo_matmat,
    coo_matvec,
    coo_todense,
    csr_fromdense,
    csr_matmat,
    csr_matvec,
    csr_todense,
)
from corejax_sparse.products import dot_general as bcoo_dot_general
from corejax_sparse.products import multiply_dense as bcoo_multiply_dense
from corejax_sparse.products import multiply_sparse as bcoo_multiply_sparse
from corejax_sparse.products import sampled as bcoo_dot_general_sampled
from corejax_sparse.structure import broadcast_in_dim as bcoo_broadcast_in_dim
from corejax_sparse.structure import concatenate as bcoo_concatenate
from corejax_sparse.structure import dynamic_slice as bcoo_dynamic_slice
from corejax_sparse.structure import reduce_sum as bcoo_reduce_sum
from corejax_sparse.structure import reshape as bcoo_reshape
from corejax_sparse.structure import rev as bcoo_rev
from corejax_sparse.structure import slice_ as bcoo_slice
from corejax_sparse.structure import squeeze as bcoo_squeeze
from corejax_sparse.structure import transpose as bcoo_transpose
from corejax_sparse.transform import sparsify

__all__ = [
    "BCOO",
    "BCSR",
    "COO",
    "CSC",
    "CSR",
    "CuSparseEfficiencyWarning",
    "JAXSparse",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "bcoo_broadcast_in_dim",
    "bcoo_concatenate",
    "bcoo_conv_general_dilated",
    "bcoo_dot_general",
    "bcoo_dot_general_sampled",
    "bcoo_dynamic_slice",
    "bcoo_extract",
    "bcoo_fromdense",
    "bcoo_gather",
    "bcoo_multiply_dense",
    "bcoo_multiply_sparse",
    "bcoo_reduce_sum",
    "bcoo_reshape",
    "bcoo_rev",
    "bcoo_slice",
    "bcoo_sort_indices",
    "bcoo_squeeze",
    "bcoo_sum_duplicates",
    "bcoo_todense",
    "bcoo_transpose",
    "bcoo_update_layout",
    "bcsr_broadcast_in_dim",
    "bcsr_concatenate",
    "bcsr_dot_general",
    "bcsr_extract",
    "bcsr_fromdense",
    "bcsr_sum_duplicates",
    "bcsr_todense",
    "coo_fromdense",
    "coo_matmat",
    "coo_matvec",
    "coo_todense",
    "csr_fromdense",
    "csr_matmat",
    "csr_matvec",
    "csr_todense",
    "empty",
    "eye",
    "grad",
    "jacfwd",
    "jacobian",
    "jacrev",
    "linalg",
    "random_bcoo",
    "sparsify",
    "todense",
    "value_and_grad",
]
