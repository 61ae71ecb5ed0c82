"""Layers, activations, initialisers: functions of one sample whose parameters are learnt.

`layer(x)` is inference, always; `layer.training(x, key=key)`, where a layer has one, is one sample
of a training batch and gives back the layer with its renewed statistics. Any Equinox module is a
layer.
"""

from wonderland.nn.activations import (
    ELU,
    LeakyReLU,
    PReLU,
    Sigmoid,
    activation,
    elu,
    gelu,
    identity,
    leaky_relu,
    relu,
    sigmoid,
    silu,
    softplus,
    tanh,
)
from wonderland.nn.compose import Residual, Sequential
from wonderland.nn.dropout import Dropout
from wonderland.nn.embeddings import Embedding, NumericalEmbedding, Periodic, PiecewiseLinear
from wonderland.nn.initialisers import glorot, he, initialiser, orthogonal
from wonderland.nn.layer import train_through
from wonderland.nn.linear import Linear
from wonderland.nn.mlp import MLP
from wonderland.nn.norms import BatchNorm, LayerNorm
from wonderland.nn.statistic import Statistic, decaying, partition, trainable
from wonderland.nn.tabular import TabularNet

__all__ = [
    "ELU",
    "MLP",
    "BatchNorm",
    "Dropout",
    "Embedding",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "NumericalEmbedding",
    "PReLU",
    "Periodic",
    "PiecewiseLinear",
    "Residual",
    "Sequential",
    "Sigmoid",
    "Statistic",
    "TabularNet",
    "activation",
    "decaying",
    "elu",
    "gelu",
    "glorot",
    "he",
    "identity",
    "initialiser",
    "leaky_relu",
    "orthogonal",
    "partition",
    "relu",
    "sigmoid",
    "silu",
    "softplus",
    "tanh",
    "train_through",
    "trainable",
]
