"""`corejax.numpy.linalg`: linear algebra with NumPy's names."""

from __future__ import annotations

from corejax_linalg.numpy_linalg.decompositions import cholesky as cholesky
from corejax_linalg.numpy_linalg.decompositions import eig as eig
from corejax_linalg.numpy_linalg.decompositions import eigh as eigh
from corejax_linalg.numpy_linalg.decompositions import eigvals as eigvals
from corejax_linalg.numpy_linalg.decompositions import eigvalsh as eigvalsh
from corejax_linalg.numpy_linalg.decompositions import qr as qr
from corejax_linalg.numpy_linalg.decompositions import svd as svd
from corejax_linalg.numpy_linalg.decompositions import svdvals as svdvals
from corejax_linalg.numpy_linalg.equations import inv as inv
from corejax_linalg.numpy_linalg.equations import lstsq as lstsq
from corejax_linalg.numpy_linalg.equations import matrix_power as matrix_power
from corejax_linalg.numpy_linalg.equations import pinv as pinv
from corejax_linalg.numpy_linalg.equations import solve as solve
from corejax_linalg.numpy_linalg.equations import tensorinv as tensorinv
from corejax_linalg.numpy_linalg.equations import tensorsolve as tensorsolve
from corejax_linalg.numpy_linalg.numbers import cond as cond
from corejax_linalg.numpy_linalg.numbers import det as det
from corejax_linalg.numpy_linalg.numbers import matrix_norm as matrix_norm
from corejax_linalg.numpy_linalg.numbers import matrix_rank as matrix_rank
from corejax_linalg.numpy_linalg.numbers import norm as norm
from corejax_linalg.numpy_linalg.numbers import slogdet as slogdet
from corejax_linalg.numpy_linalg.numbers import vector_norm as vector_norm
from corejax_linalg.numpy_linalg.products import cross as cross
from corejax_linalg.numpy_linalg.products import diagonal as diagonal
from corejax_linalg.numpy_linalg.products import matmul as matmul
from corejax_linalg.numpy_linalg.products import matrix_transpose as matrix_transpose
from corejax_linalg.numpy_linalg.products import multi_dot as multi_dot
from corejax_linalg.numpy_linalg.products import outer as outer
from corejax_linalg.numpy_linalg.products import tensordot as tensordot
from corejax_linalg.numpy_linalg.products import trace as trace
from corejax_linalg.numpy_linalg.products import vecdot as vecdot

_MODULES = {"annotations", "corejax_linalg", "decompositions", "equations", "numbers", "products"}
__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in _MODULES)
