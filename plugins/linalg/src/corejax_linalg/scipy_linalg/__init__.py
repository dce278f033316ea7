"""`corejax.scipy.linalg`: linear algebra with SciPy's names."""

from __future__ import annotations

from corejax_linalg.scipy_linalg.equations import cho_solve as cho_solve
from corejax_linalg.scipy_linalg.equations import lu_solve as lu_solve
from corejax_linalg.scipy_linalg.equations import solve as solve
from corejax_linalg.scipy_linalg.equations import solve_sylvester as solve_sylvester
from corejax_linalg.scipy_linalg.equations import solve_triangular as solve_triangular
from corejax_linalg.scipy_linalg.factors import cho_factor as cho_factor
from corejax_linalg.scipy_linalg.factors import cholesky as cholesky
from corejax_linalg.scipy_linalg.factors import det as det
from corejax_linalg.scipy_linalg.factors import eigh as eigh
from corejax_linalg.scipy_linalg.factors import eigh_tridiagonal as eigh_tridiagonal
from corejax_linalg.scipy_linalg.factors import hessenberg as hessenberg
from corejax_linalg.scipy_linalg.factors import inv as inv
from corejax_linalg.scipy_linalg.factors import lu as lu
from corejax_linalg.scipy_linalg.factors import lu_factor as lu_factor
from corejax_linalg.scipy_linalg.factors import polar as polar
from corejax_linalg.scipy_linalg.factors import qr as qr
from corejax_linalg.scipy_linalg.factors import qr_multiply as qr_multiply
from corejax_linalg.scipy_linalg.factors import rsf2csf as rsf2csf
from corejax_linalg.scipy_linalg.factors import schur as schur
from corejax_linalg.scipy_linalg.factors import svd as svd
from corejax_linalg.scipy_linalg.functions import expm as expm
from corejax_linalg.scipy_linalg.functions import expm_frechet as expm_frechet
from corejax_linalg.scipy_linalg.functions import funm as funm
from corejax_linalg.scipy_linalg.functions import sqrtm as sqrtm
from corejax_linalg.scipy_linalg.special_matrices import block_diag as block_diag
from corejax_linalg.scipy_linalg.special_matrices import circulant as circulant
from corejax_linalg.scipy_linalg.special_matrices import companion as companion
from corejax_linalg.scipy_linalg.special_matrices import convolution_matrix as convolution_matrix
from corejax_linalg.scipy_linalg.special_matrices import dft as dft
from corejax_linalg.scipy_linalg.special_matrices import fiedler as fiedler
from corejax_linalg.scipy_linalg.special_matrices import fiedler_companion as fiedler_companion
from corejax_linalg.scipy_linalg.special_matrices import hadamard as hadamard
from corejax_linalg.scipy_linalg.special_matrices import hankel as hankel
from corejax_linalg.scipy_linalg.special_matrices import helmert as helmert
from corejax_linalg.scipy_linalg.special_matrices import hilbert as hilbert
from corejax_linalg.scipy_linalg.special_matrices import invhilbert as invhilbert
from corejax_linalg.scipy_linalg.special_matrices import invpascal as invpascal
from corejax_linalg.scipy_linalg.special_matrices import leslie as leslie
from corejax_linalg.scipy_linalg.special_matrices import pascal as pascal
from corejax_linalg.scipy_linalg.special_matrices import toeplitz as toeplitz

_MODULES = {"annotations", "corejax_linalg", "equations", "factors", "functions", "special_matrices"}
__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in _MODULES)
