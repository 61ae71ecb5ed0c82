"""Kernels: k(x, z) of one pair, differentiable; matrices at the machine's speed."""

from wonderland.kernels.custom import Function, Precomputed, wrap_function
from wonderland.kernels.features import quadratic_features
from wonderland.kernels.inner import Cosine, Linear, Polynomial, Sigmoid
from wonderland.kernels.kernel import Kernel, Product, Scaled, Sum
from wonderland.kernels.low_rank import Nystroem, PivotedCholesky, RandomFeatures
from wonderland.kernels.mercer import Verdict, mercer
from wonderland.kernels.resolve import resolve
from wonderland.kernels.stationary import Gaussian, Laplace, Matern

__all__ = [
    "Cosine",
    "Function",
    "Gaussian",
    "Kernel",
    "Laplace",
    "Linear",
    "Matern",
    "Nystroem",
    "PivotedCholesky",
    "Polynomial",
    "Precomputed",
    "Product",
    "RandomFeatures",
    "Scaled",
    "Sigmoid",
    "Sum",
    "Verdict",
    "mercer",
    "quadratic_features",
    "resolve",
    "wrap_function",
]
