"""Losses as objects that know their mathematics: value, derivative, conjugate, prox, and facts."""

from wonderland.losses.calibration import calibrated, excess_risk
from wonderland.losses.exponential import Exponential, Logistic, Tilted
from wonderland.losses.likelihood import BinaryCrossEntropy, CrossEntropy
from wonderland.losses.loss import Loss, MarginLoss, ResidualLoss
from wonderland.losses.margin import Hinge, Margin, Perceptron, SquaredHinge, ZeroOne
from wonderland.losses.names import NAMES, resolve
from wonderland.losses.regression import (
    Absolute,
    EpsilonInsensitive,
    GaussianNLL,
    Huber,
    Quantile,
    Squared,
    SquaredEpsilonInsensitive,
)
from wonderland.losses.roots import entropy_term, newton_within
from wonderland.losses.softmax import (
    log_softmax,
    logsumexp,
    one_hot,
    sigmoid,
    softmax,
    softplus,
)

__all__ = [
    "NAMES",
    "Absolute",
    "BinaryCrossEntropy",
    "CrossEntropy",
    "EpsilonInsensitive",
    "Exponential",
    "GaussianNLL",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Margin",
    "MarginLoss",
    "Perceptron",
    "Quantile",
    "ResidualLoss",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "Tilted",
    "ZeroOne",
    "calibrated",
    "entropy_term",
    "excess_risk",
    "log_softmax",
    "logsumexp",
    "newton_within",
    "one_hot",
    "resolve",
    "sigmoid",
    "softmax",
    "softplus",
]
