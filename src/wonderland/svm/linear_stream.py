"""Linear support vector machines on more rows than memory holds (`solve/interior_stream.py`)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from wonderland.core.errors import InputError
from wonderland.core.evidence import Claim, Evidence
from wonderland.shell.rows import Rows
from wonderland.solve.interior_passes import Block
from wonderland.solve.interior_problem import Intervals
from wonderland.solve.interior_routes import solve_intervals
from wonderland.solve.interior_sift import natural_width
from wonderland.solve.interior_stream import Ended, Passing, Wish, solve_passing
from wonderland.svm.linear_evidence import worst
from wonderland.svm.linear_model import Scores
from wonderland.svm.linear_problem import of_signs, of_targets

__all__ = ["classes_in_passes", "targets_in_passes"]

KEPT = 1 << 22  # entries of the rows all problems together may keep: 32 MB
ROUGH = 1e-3  # relative gap to which the sample is solved
LEAST = 0.05  # of the natural width: the narrowest first smoothing


def classes_in_passes(model: Any, rows: Rows) -> dict[str, Any]:
    """Fitted attributes of a LinearSVC, each class against the rest."""
    _refuse(model)
    count = 0 if rows.classes is None else len(rows.classes)
    codes = np.array([1]) if count == 2 else np.arange(count)

    def ends(target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own = target[None, :] == codes[:, None]
        return np.where(own, 1.0, -np.inf), np.where(own, np.inf, -1.0)

    squared = model.loss == "squared_hinge"
    held, strength = rows.sample, _strengths(model, rows)
    intercept = bool(model.fit_intercept)
    starts = [
        of_signs(
            held.X,
            np.where(held.y == code, 1.0, -1.0),
            strength,
            intercept=intercept,
            squared=squared,
        )
        for code in codes
    ]
    found = _solve(model, rows, ends, starts)
    names = [str(rows.classes[code]) for code in codes] if rows.classes is not None else []
    return _published(model, found, names, single=count == 2, labels=True)


def targets_in_passes(model: Any, rows: Rows) -> dict[str, Any]:
    """Fitted attributes of a LinearSVR, one problem for each output."""
    _refuse_infinite(model)
    epsilon = float(model.epsilon)

    def ends(target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return target.T - epsilon, target.T + epsilon

    squared = model.loss == "squared_epsilon_insensitive"
    held, strength = rows.sample, _strengths(model, rows)
    intercept = bool(model.fit_intercept)
    starts = [
        of_targets(held.X, y, epsilon, strength, intercept=intercept, squared=squared)
        for y in held.y.T
    ]
    found = _solve(model, rows, ends, starts)
    shaped = _published(model, found, rows.targets, single=rows.flat, labels=False)
    return {**shaped, "coef_": shaped["coef_"][0] if rows.flat else shaped["coef_"]}


def _refuse(model: Any) -> None:
    for name, usual in (("penalty", "l2"), ("multi_class", "ovr")):
        if getattr(model, name) != usual:
            raise InputError(
                f"{name}={getattr(model, name)!r} for data in chunks",
                f"{name}={usual!r}, or a table in memory",
                f"Pass {name}={usual!r}, or a sample of the rows",
            )
    _refuse_infinite(model)


def _refuse_infinite(model: Any) -> None:
    if np.isinf(model.C):
        raise InputError(
            "C is inf for data in chunks",
            "a finite C, or a table in memory",
            "Pass a large C, such as C=1e6, and see from the evidence what is left to pay",
        )


def _strengths(model: Any, rows: Rows) -> np.ndarray:
    """c of the sample (m,): each row counts for those it stands for."""
    held = rows.sample
    strength = float(model.C) * held.factor
    return strength if held.weight is None else strength * held.weight


def _solve(model: Any, rows: Rows, ends: Any, starts: list[Intervals]) -> list[Ended]:
    """Start each problem on the sample, then pass over all rows."""
    C = float(model.C)

    def blocks() -> Iterator[Block]:
        for X, target, weight in rows.chunks():
            strength = np.full(len(X), C) if weight is None else C * weight
            low, high = ends(target)
            yield Block(X, low, high, strength)

    m, d = rows.sample.X.shape
    wide = max(LEAST, 2.0 * float(np.sqrt((d + 1) / m)))
    wishes = []
    for problem in starts:
        point = solve_intervals(problem, ROUGH, int(model.max_iter)).point
        scale = natural_width(problem)
        wishes.append(
            Wish(point.w, point.b, wide * scale, scale, float(model.tol), max(1, model.max_iter))
        )
    hold = 0 if starts[0].squared else max(1, KEPT // (max(d, 1) * len(starts)))
    passing = Passing(blocks, starts[0].intercept, starts[0].squared, hold)
    return solve_passing(passing, wishes)


def _published(
    model: Any, found: list[Ended], names: list[str], *, single: bool, labels: bool
) -> dict[str, Any]:
    coef = np.stack([each.w for each in found])
    intercept = np.array([each.b for each in found])
    claims = _claims(found, names, float(model.tol))
    return {
        "coef_": coef,
        "intercept_": intercept if model.fit_intercept else 0.0,
        "n_iter_": max(each.passes for each in found),
        "model_": Scores(coef[0], intercept[0]) if single else Scores(coef, intercept),
        "status_": worst([each.status for each in found]),
        "evidence_": Evidence([*claims, *(_label_claims(found) if labels else [])]),
    }


def _gap(each: Ended) -> float:
    return max(each.primal - each.dual, 0.0) / max(each.primal, np.finfo(float).tiny)


def _claims(found: list[Ended], names: list[str], tol: float) -> list[Claim]:
    over = f", summed over {len(found)} problems" if len(found) > 1 else ""
    worst_of = f", the worst of {len(found)} problems" if len(found) > 1 else ""
    squared = found[0].gradient is not None
    how = (
        "Newton's method, its Hessian summed in each pass"
        if squared
        else f"smoothed Newton steps, then the {max(each.kept for each in found):,} rows nearest "
        "to an end solved as they are beside the sum of all others"
    )
    claims = [
        Claim.fact("solver", "passes", f"more rows than are held in memory: {how}"),
        Claim.fact("primal", sum(each.primal for each in found), f"½‖w‖² + C Σ ω loss{over}"),
        Claim.fact(
            "dual",
            sum(each.dual for each in found),
            f"a lower bound of the optimum, from the multipliers{over}",
        ),
        Claim.below(
            "duality_gap",
            max(map(_gap, found)),
            tol,
            f"(primal − dual)/primal: no solution is better by more{worst_of}",
        ),
        Claim.fact(
            "support_vectors",
            max(each.multipliers for each in found),
            f"samples with a multiplier that is not zero{worst_of.replace('worst', 'largest')}",
        ),
        Claim.fact("passes", max(each.passes for each in found), "over all rows, after the first"),
    ]
    if squared:
        steepest = max(each.gradient or 0.0 for each in found)
        claims.append(Claim.fact("gradient_norm", steepest, f"largest entry of ∇P{worst_of}"))
    if len(found) > 1:
        rows = {
            name: {
                "primal": each.primal,
                "dual": each.dual,
                "duality_gap": _gap(each),
                "support_vectors": each.multipliers,
                "passes": each.passes,
            }
            for name, each in zip(names, found, strict=True)
        }
        claims.append(Claim.fact("per_problem", rows, "the same for each class or output"))
    return claims


def _label_claims(found: list[Ended]) -> list[Claim]:
    norms = [float(np.linalg.norm(each.w)) for each in found]
    margin = 1.0 / max(norms) if max(norms) > 0 else float(np.inf)
    wrong = max(each.wrong for each in found)
    return [
        Claim.fact("margin", margin, "γ = 1/‖w‖: where scores are ±1"),
        Claim.fact(
            "separable",
            True if not wrong else None,
            "the fitted hyperplane has every sample on its own side: it is the certificate"
            if not wrong
            else f"{wrong:,} samples are on the wrong side of this hyperplane; C=inf, on a table "
            "in memory, decides whether another one separates",
        ),
    ]
