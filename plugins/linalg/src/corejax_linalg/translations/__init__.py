"""XLA translations of the primitives.

On CPUs they call the LAPACK kernels that come with jaxlib. On other platforms `cholesky` and `triangular_solve` are
StableHLO's operations, and what is made of them; for the others there is no rule, so that they are called back on the
host.
"""

from __future__ import annotations

from corejax_linalg.translations import cholesky as cholesky
from corejax_linalg.translations import eig as eig
from corejax_linalg.translations import eigh as eigh
from corejax_linalg.translations import hessenberg as hessenberg
from corejax_linalg.translations import householder as householder
from corejax_linalg.translations import lu as lu
from corejax_linalg.translations import qr as qr
from corejax_linalg.translations import schur as schur
from corejax_linalg.translations import svd as svd
from corejax_linalg.translations import triangular_solve as triangular_solve
from corejax_linalg.translations import tridiagonal as tridiagonal
from corejax_linalg.translations import tridiagonal_solve as tridiagonal_solve
from corejax_linalg.translations import updates as updates
