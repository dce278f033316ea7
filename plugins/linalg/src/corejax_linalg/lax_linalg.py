"""`corejax.lax.linalg`: decompositions and solvers, as primitives and as functions."""

from __future__ import annotations

from corejax_linalg.primitives.cholesky import cholesky as cholesky
from corejax_linalg.primitives.cholesky import cholesky_p as cholesky_p
from corejax_linalg.primitives.eig import EigImplementation as EigImplementation
from corejax_linalg.primitives.eig import eig as eig
from corejax_linalg.primitives.eig import eig_p as eig_p
from corejax_linalg.primitives.eigh import EighImplementation as EighImplementation
from corejax_linalg.primitives.eigh import eigh as eigh
from corejax_linalg.primitives.eigh import eigh_p as eigh_p
from corejax_linalg.primitives.householder import householder_product as householder_product
from corejax_linalg.primitives.householder import householder_product_p as householder_product_p
from corejax_linalg.primitives.householder import ormqr as ormqr
from corejax_linalg.primitives.householder import ormqr_p as ormqr_p
from corejax_linalg.primitives.lu import lu as lu
from corejax_linalg.primitives.lu import lu_p as lu_p
from corejax_linalg.primitives.lu import lu_pivots_to_permutation as lu_pivots_to_permutation
from corejax_linalg.primitives.lu import lu_pivots_to_permutation_p as lu_pivots_to_permutation_p
from corejax_linalg.primitives.qdwh import qdwh as qdwh
from corejax_linalg.primitives.qr import qr as qr
from corejax_linalg.primitives.qr import qr_p as qr_p
from corejax_linalg.primitives.reductions import hessenberg as hessenberg
from corejax_linalg.primitives.reductions import hessenberg_p as hessenberg_p
from corejax_linalg.primitives.reductions import schur as schur
from corejax_linalg.primitives.reductions import schur_p as schur_p
from corejax_linalg.primitives.reductions import tridiagonal as tridiagonal
from corejax_linalg.primitives.reductions import tridiagonal_p as tridiagonal_p
from corejax_linalg.primitives.svd import SvdAlgorithm as SvdAlgorithm
from corejax_linalg.primitives.svd import svd as svd
from corejax_linalg.primitives.svd import svd_p as svd_p
from corejax_linalg.primitives.triangular_solve import triangular_solve as triangular_solve
from corejax_linalg.primitives.triangular_solve import triangular_solve_p as triangular_solve_p
from corejax_linalg.primitives.tridiagonal_solve import tridiagonal_solve as tridiagonal_solve
from corejax_linalg.primitives.tridiagonal_solve import tridiagonal_solve_p as tridiagonal_solve_p
from corejax_linalg.primitives.updates import cholesky_update as cholesky_update
from corejax_linalg.primitives.updates import cholesky_update_p as cholesky_update_p
from corejax_linalg.primitives.updates import symmetric_product as symmetric_product
from corejax_linalg.primitives.updates import symmetric_product_p as symmetric_product_p

__all__ = sorted(name for name in globals() if not name.startswith("_") and name != "annotations")
