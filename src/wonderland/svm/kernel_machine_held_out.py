"""Scores of samples that a machine has not learned from, and the sigmoids fitted to them."""

from typing import Any

import numpy as np

from wonderland.core.random import seed_of
from wonderland.solve.box_gram import Gram
from wonderland.solve.box_problem import BoxProblem
from wonderland.solve.box_solver import Limits, solve_box
from wonderland.svm.kernel_machine_calibration import folds, platt
from wonderland.svm.kernel_machine_pairs import Duel, spread

__all__ = ["calibrated"]

PARTS = 5  # as LIBSVM


def calibrated(
    gram: Gram, problems: list[Duel], cost: np.ndarray, limits: Limits, seed: Any
) -> dict[str, Any]:
    """probA_ and probB_ of every machine: each is fitted five times on four fifths."""
    draw = np.random.default_rng(seed_of(seed))
    parts = [folds(duel.signs, PARTS, draw) for duel in problems]

    def one(pair: tuple[Duel, np.ndarray]) -> tuple[float, float]:
        duel, fold = pair
        scores = _held_out(gram, duel, fold, cost[duel.rows], limits)
        return platt(scores, duel.signs, (cost[duel.rows] > 0).astype(float))

    found = spread(one, list(zip(problems, parts, strict=True)))
    return {
        "probA_": np.array([a for a, _ in found]),
        "probB_": np.array([b for _, b in found]),
    }


def _held_out(
    gram: Gram, duel: Duel, fold: np.ndarray, cost: np.ndarray, limits: Limits
) -> np.ndarray:
    """f of each sample by the machine that has not seen it (n_part,)."""
    scores = np.zeros(len(duel.rows))
    height = cost * duel.signs
    problem = BoxProblem(duel.signs, np.minimum(height, 0.0), np.maximum(height, 0.0))
    for part in range(PARTS):
        learn, held = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
        if not len(held):
            continue
        if len(np.unique(duel.signs[learn])) < 2:
            scores[held] = duel.signs[learn][0] if len(learn) else 0.0
            continue
        fit = solve_box(problem.part(learn), gram.part(duel.rows[learn]), limits)
        support = np.flatnonzero(fit.beta)
        f = gram.product(duel.rows[held], duel.rows[learn][support], fit.beta[support], np.float64)
        scores[held] = f + fit.certificate.bias
    return scores
