"""From classes to problems of two sides, and from their answers back to classes.

One against one: for each pair i < j of classes a machine on their samples only, positive for i, as
LIBSVM; every pair gives a vote, and the class with most votes wins, the first of equals. One
against the rest: for each class a machine on all samples, and the largest score wins. Two classes
are one problem, positive for the second.
"""

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from wonderland.core.blocks import map_rows
from wonderland.solve.box_gram import Gram
from wonderland.solve.box_problem import BoxProblem
from wonderland.solve.box_solver import Limits, solve_box
from wonderland.svm.kernel_machine_evidence import Told

__all__ = ["Duel", "Supports", "as_one_against_rest", "duels", "solve_all", "supports", "votes"]


class Duel(NamedTuple):
    """One problem of two sides.

    Attributes:
        name: What is set against what.
        rows: Which samples take part, in their order.
        signs: +1 or −1 for each of them.
        classes: (i, j) of one against one; (i,) against the rest.
    """

    name: str
    rows: np.ndarray
    signs: np.ndarray
    classes: tuple[int, ...]


def duels(codes: np.ndarray, names: np.ndarray, *, against_rest: bool) -> list[Duel]:
    """The problems of k classes: k(k − 1)/2 one against one, k against the rest, 1 for k = 2."""
    k, everything = len(names), np.arange(len(codes))
    if k == 2:
        signs = np.where(codes == 1, 1.0, -1.0)
        return [Duel(f"{names[1]} against {names[0]}", everything, signs, (0, 1))]
    if against_rest:
        return [
            Duel(f"{names[i]} against the rest", everything, np.where(codes == i, 1.0, -1.0), (i,))
            for i in range(k)
        ]
    return [_pair(codes, names, i, j) for i, j in combinations(range(k), 2)]


def _pair(codes: np.ndarray, names: np.ndarray, i: int, j: int) -> Duel:
    rows = np.concatenate([np.flatnonzero(codes == i), np.flatnonzero(codes == j)])
    signs = np.where(codes[rows] == i, 1.0, -1.0)
    return Duel(f"{names[i]} against {names[j]}", rows, signs, (i, j))


def solve_all(gram: Gram, duels: list[Duel], cost: np.ndarray, limits: Limits) -> list[Told]:
    """Solve every problem, as many at a time as there are cores.

    Args:
        gram: K of all samples.
        duels: The problems.
        cost: Cω_i (n,).
        limits: When to stop.
    """

    def one(duel: Duel) -> Told:
        height = cost[duel.rows] * duel.signs
        problem = BoxProblem(duel.signs, np.minimum(height, 0.0), np.maximum(height, 0.0))
        whole = len(duel.rows) == gram.n
        fit = solve_box(problem, gram if whole else gram.part(duel.rows), limits)
        return Told(duel.name, duel.rows, problem, fit, labels=True)

    return spread(one, duels)


def spread(one: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """One call for each item, dealt to the cores in turn."""
    if len(items) == 1:
        return [one(items[0])]
    cores = 2
    order = [i for start in range(cores) for i in range(start, len(items), cores)]

    def work(start: int, stop: int) -> list[tuple[int, Any]]:
        return [(i, one(items[i])) for i in order[start:stop]]

    done = map_rows(work, len(items), 1 << 30)
    return [answer for _, answer in sorted((pair for part in done for pair in part), key=_number)]


def _number(pair: tuple[int, Any]) -> int:
    return pair[0]


class Supports(NamedTuple):
    """The union of all support vectors.

    Attributes:
        rows: Their rows, class by class (m,).
        counts: How many there are of each class (k,).
        coef: β of each problem over the union (s, m).
        compact: The layout of LIBSVM's dual_coef_ (k − 1, m), or `coef` where it is that.
        intercept: b of each problem (s,).
    """

    rows: np.ndarray
    counts: np.ndarray
    coef: np.ndarray
    compact: np.ndarray
    intercept: np.ndarray


def supports(codes: np.ndarray, k: int, duels: list[Duel], told: list[Told]) -> Supports:
    """Join the answers."""
    used = np.zeros(len(codes), bool)
    for fact in told:
        used[fact.support] = True
    rows = np.flatnonzero(used)
    rows = rows[np.argsort(codes[rows], kind="stable")]
    place = np.full(len(codes), -1)
    place[rows] = np.arange(len(rows))
    coef = np.zeros((len(told), len(rows)))
    for row, fact in zip(coef, told, strict=True):
        row[place[fact.support]] = fact.fit.beta[fact.fit.beta != 0]
    counts = np.bincount(codes[rows], minlength=k).astype(np.int32)
    intercept = np.array([fact.fit.certificate.bias for fact in told])
    one_to_one = len(told) > 1 and len(duels[0].classes) == 2
    compact = _compact(codes[rows], k, duels, coef) if one_to_one else coef
    return Supports(rows.astype(np.int32), counts, coef, compact, intercept)


def _compact(codes: np.ndarray, k: int, duels: list[Duel], coef: np.ndarray) -> np.ndarray:
    """Of class i against j: the coefficients of i in row j − 1, those of j in row i."""
    compact = np.zeros((k - 1, len(codes)))
    for row, duel in zip(coef, duels, strict=True):
        i, j = duel.classes
        compact[j - 1, codes == i] = row[codes == i]
        compact[i, codes == j] = row[codes == j]
    return compact


def votes(scores: np.ndarray, k: int) -> np.ndarray:
    """Votes of one-against-one scores (n, k(k − 1)/2): for i where positive, else for j (n, k)."""
    count = np.zeros((len(scores), k))
    for column, (i, j) in zip(scores.T, combinations(range(k), 2), strict=True):
        count[:, i] += column > 0
        count[:, j] += column <= 0
    return count


def as_one_against_rest(scores: np.ndarray, k: int) -> np.ndarray:
    """Votes, with the sums of scores, squeezed into ±1/3, to order equals (n, k).

    As scikit-learn does, whose decision_function_shape="ovr" has these numbers.
    """
    count, confidence = np.zeros((len(scores), k)), np.zeros((len(scores), k))
    for column, (i, j) in zip(scores.T, combinations(range(k), 2), strict=True):
        confidence[:, i] += column
        confidence[:, j] -= column
        count[:, i] += column >= 0
        count[:, j] += column < 0
    return count + confidence / (3.0 * (np.abs(confidence) + 1.0))
