"""Penalties as objects that know their mathematics: value, prox, conjugate, certificate, facts."""

from wonderland.penalties.box import Box
from wonderland.penalties.norms import L1, L2, ElasticNet, Group, NoPenalty
from wonderland.penalties.penalty import Penalty, shrink

__all__ = ["L1", "L2", "Box", "ElasticNet", "Group", "NoPenalty", "Penalty", "shrink"]
