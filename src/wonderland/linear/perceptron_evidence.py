"""What a person needs to know about a perceptron: does a plane exist, did theory keep its word."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wonderland.core.evidence import Claim
from wonderland.linear.perceptron_epochs import Ended
from wonderland.linear.perceptron_online import Rule
from wonderland.shell.inputs import Classes
from wonderland.solve.separation import ROUNDS, Separation, separate

__all__ = ["Told", "claims_of", "judge"]

CHEAP = 1e9  # operations that a verdict beside the fit may take


class Told(NamedTuple):
    """What the claims are made from.

    Attributes:
        verdicts: Of each problem; empty where none was reached.
        rule: Steps, which enter the bound.
        found: How the run ended.
        table: The data.
        plain: Whether the theorem speaks about this run: begun at zero, without a penalty.
    """

    verdicts: Sequence[Separation | None]
    rule: Rule
    found: Ended
    table: Classes
    plain: bool


def judge(
    table: Classes, signs: np.ndarray, found: Ended, *, intercept: bool
) -> list[Separation | None]:
    """Whether each problem is separable: exactly where that is cheap, else where it is easy.

    Args:
        table: The data.
        signs: (k, K).
        found: How the run ended.
        intercept: Whether planes may miss the origin.
    """
    n, d = table.X.shape
    cheap = signs.shape[1] * (4.0 * n * (d + 1) + 200.0 * (d + 1) ** 3) <= CHEAP
    used = np.ones(n, bool) if table.weight is None else table.weight > 0
    verdicts: list[Separation | None] = []
    for j, column in enumerate(signs.T):
        sign = column[table.codes]
        kept = used & (sign != 0)
        X = table.X if kept.all() else table.X[kept]
        plane = found.last[0][j], float(found.last[1][j])
        clear = found.wrong[j] == 0 and found.mistakes[j] > 0
        verdict = separate(
            X,
            sign[kept],
            fit_intercept=intercept,
            widest=cheap,
            plane=plane if clear else None,
            rounds=ROUNDS if cheap else 0,
        )
        verdicts.append(verdict if verdict.proof else None)
    return verdicts


def claims_of(told: Told) -> list[Claim]:
    """The claims of one fit; arrays where there are several problems."""
    found = told.found
    claims = [_separable(told)]
    claims += _geometry(told)
    claims.append(_mistakes(told))
    if (bound := iteration_bound(told)) is not None:
        text = "C²/γ², times the ratio of the longest to the shortest step: most mistakes possible"
        claims.append(Claim.fact("iteration_bound", _one(bound), text))
    claims.append(
        Claim.fact(
            "training_mistakes", _one(found.wrong), "samples that were wrong when last visited"
        )
    )
    claims.append(_cycle(found))
    return [*claims, Claim.fact("solver", "online", "one update for every mistake, in one pass")]


def _one(values: Any) -> Any:
    """A number for one problem, an array for several."""
    array = np.asarray(values)
    return array.item() if array.size == 1 else array


def _separable(told: Told) -> Claim:
    known = [verdict for verdict in told.verdicts if verdict is not None]
    verdicts = [None if v is None else v.separable for v in told.verdicts]
    value = verdicts[0] if len(verdicts) == 1 else tuple(verdicts) or None
    if not known:
        how = "not decided beside this fit: call separation(X, y), or see `separate` in wl.solve"
    elif all(verdict.separable for verdict in known):
        how = "a plane with every sample on its own side; separation_ holds it"
    else:
        how = "where False, weighted means of the classes coincide; separation_ holds the weights"
    return Claim.fact("separable", value, how)


def _geometry(told: Told) -> list[Claim]:
    known = told.verdicts
    if not known or any(verdict is None for verdict in known):
        return []
    found = [verdict for verdict in known if verdict is not None]
    radius = np.array([v.radius for v in found])
    gamma = np.array([v.augmented_margin for v in found])
    claims = [
        Claim.fact(
            "margin", _one(gamma), "γ: distance of the nearest sample, in (x, 1); 0 if none"
        ),
        Claim.fact("radius", _one(radius), "C: length of the longest sample, in (x, 1)"),
    ]
    if meeting := [v for v in found if not v.separable]:
        residual = np.array([v.residual for v in meeting])
        rows = tuple(int(np.count_nonzero(v.weights)) for v in meeting)
        text = f"distance of the classes' weighted means, relative to the data; {rows} samples"
        claims.append(Claim.below("meeting", _one(residual), 1e-9, text))
    return claims


def _mistakes(told: Told) -> Claim:
    """Novikoff's bound; unequal steps cost their ratio: Σc ≤ c_max C²/γ²."""
    mistakes = _one(told.found.mistakes)
    bound = iteration_bound(told)
    if bound is None:
        return Claim.fact("mistakes", mistakes, "updates made")
    return Claim.below(
        "mistakes", mistakes, _one(bound), "updates made; the bound is the theorem's"
    )


def iteration_bound(told: Told) -> np.ndarray | None:
    """C²/γ² for each problem (K,), infinite where none is separable; None where it says nothing."""
    known = [verdict for verdict in told.verdicts if verdict is not None]
    undecided = not known or len(known) < len(told.verdicts)
    if not told.plain or undecided or not any(verdict.separable for verdict in known):
        return None
    ratio = np.array(
        [(v.radius / v.augmented_margin) ** 2 if v.separable else np.inf for v in known]
    )
    return ratio * _unevenness(told)


def _unevenness(told: Told) -> np.ndarray:
    """Longest step over shortest, of the steps that were possible (K,)."""
    rule, table = told.rule, told.table
    weight = np.ones(1) if table.weight is None else table.weight[table.weight > 0]
    steps = np.where((rule.signs != 0) & (rule.steps > 0), rule.steps, np.nan)
    spread = np.nanmax(steps, axis=0) / np.nanmin(steps, axis=0)
    return spread * weight.max() / weight.min()


def _cycle(found: Ended) -> Claim:
    cycles = [cycle for cycle in found.cycle if cycle is not None]
    if not cycles:
        return Claim.fact("cycle", None, "no state came back after a pass")
    value = cycles[0] if len(found.cycle) == 1 else tuple(found.cycle)
    text = "(pass, length): the state after that pass came back so many passes later"
    return Claim.fact("cycle", value, text)
