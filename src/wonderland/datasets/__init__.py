"""Data small enough to be code, data drawn from a seed, and readers of files a user has.

>>> import wonderland as wl
>>> sample = wl.datasets.load_xor()
>>> sample.X.shape, sample.y.tolist()
((4, 2), [-1, 1, 1, -1])
"""

from wonderland.datasets.dataset import Dataset
from wonderland.datasets.files import load_idx, load_libsvm, load_sms, read_idx
from wonderland.datasets.made import (
    make_blobs,
    make_circles,
    make_moons,
    make_separable,
    make_sparse_logistic,
)
from wonderland.datasets.small import load_and, load_email_filtering, load_or, load_xor

__all__ = [
    "Dataset",
    "load_and",
    "load_email_filtering",
    "load_idx",
    "load_libsvm",
    "load_or",
    "load_sms",
    "load_xor",
    "make_blobs",
    "make_circles",
    "make_moons",
    "make_separable",
    "make_sparse_logistic",
    "read_idx",
]
