"""Basis functions: y = Σ_j w_j φ_j(x) stays linear in w, whatever φ does to x."""

from wonderland.bases.basis import Basis, expand, wobble
from wonderland.bases.fourier import Fourier
from wonderland.bases.polynomial import Polynomial
from wonderland.bases.radial import RadialBasis

__all__ = ["Basis", "Fourier", "Polynomial", "RadialBasis", "expand", "wobble"]
