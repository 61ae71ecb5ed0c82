"""Solvers: a stated problem, a choice with its reason, one loop, a certificate."""
