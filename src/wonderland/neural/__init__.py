"""Multilayer perceptrons and batched search, with scikit-learn's manners."""
