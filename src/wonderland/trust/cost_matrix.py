"""Costs of decisions, read and checked: C_ij is the cost of deciding i where j is true.

Rows are decisions and columns truths, as in arg min_i Σ_j C_ij p_j. Given as a matrix in the order
of the sorted labels, as a frame with decisions in its index and truths in its columns, or as a
mapping (decision, truth) → cost. Shapes: k classes, n rows; C (k, k), or (n, k, k) for each row.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from wonderland.core.errors import InputError, InputTypeError

__all__ = ["abstention_costs", "check_sign", "cost_matrix", "threshold"]


def check_sign(costs: Any, name: str = "costs") -> None:
    """Refuse negative or missing numbers, before any label is known."""
    values = list(costs.values()) if isinstance(costs, Mapping) else costs
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"{name} does not hold numbers ({error})",
            "a matrix of costs, a frame, or a mapping (decision, truth) → cost",
            f"Pass for instance {name}=[[0, 10], [1, 0]]",
        ) from error
    wrong = np.argwhere(~(np.isfinite(table) & (table >= 0)))
    if len(wrong):
        where = tuple(int(index) for index in wrong[0])
        which = list(costs)[where[0]] if isinstance(costs, Mapping) else where
        at = f" at {which}" if table.ndim else ""
        raise InputError(
            f"{name} holds {table[where]:g}{at}",
            "finite costs ≥ 0",
            "Subtract the smallest entry of each column (truth) from that column: "
            "the decisions stay the same",
        )


def cost_matrix(costs: Any, classes: np.ndarray) -> np.ndarray:
    """C (k, k), or (n, k, k) where each row has its own; None is 0 for right and 1 for wrong.

    >>> cost_matrix({("ill", "well"): 1.0, ("well", "ill"): 10.0}, np.array(["ill", "well"]))
    array([[ 0.,  1.],
           [10.,  0.]])
    """
    k = len(classes)
    if costs is None:
        return 1.0 - np.eye(k)
    check_sign(costs)
    if isinstance(costs, Mapping):
        return _from_pairs(costs, classes)
    if hasattr(costs, "columns") and hasattr(costs, "index"):
        return _from_frame(costs, classes)
    table = np.asarray(costs, dtype=np.float64)
    if table.ndim not in (2, 3) or table.shape[-2:] != (k, k):
        raise InputError(
            f"costs have the shape {table.shape}",
            f"({k}, {k}): a row for each decision and a column for each of the {k} labels",
            "Pass the matrix in the order of estimator.classes_, or a mapping of pairs of labels",
        )
    return table


def _from_pairs(costs: Mapping[Any, Any], classes: np.ndarray) -> np.ndarray:
    labels = classes.tolist()
    table = np.full((len(labels), len(labels)), np.nan)
    np.fill_diagonal(table, 0.0)
    for pair, cost in costs.items():
        if not (isinstance(pair, tuple) and len(pair) == 2 and set(pair) <= set(labels)):
            raise InputError(
                f"costs has the key {pair!r}",
                f"pairs (decision, truth) of the labels {labels}",
                "Pass {(decision, truth): cost, …}",
            )
        table[labels.index(pair[0]), labels.index(pair[1])] = cost
    missing = [(labels[i], labels[j]) for i, j in np.argwhere(np.isnan(table))]
    if missing:
        raise InputError(
            f"costs says nothing about {missing[0]!r}"
            + (f" and {len(missing) - 1} more pairs" if len(missing) > 1 else ""),
            "a cost for every pair (decision, truth) of different labels",
            "Add the missing pairs; only right decisions cost 0 by default",
        )
    return table


def _from_frame(costs: Any, classes: np.ndarray) -> np.ndarray:
    labels = classes.tolist()
    index, columns = list(costs.index), list(costs.columns)
    if sorted(map(str, index)) != sorted(map(str, labels)) or set(map(str, columns)) != set(
        map(str, labels)
    ):
        raise InputError(
            f"costs has the decisions {index} and the truths {columns}",
            f"the labels {labels} in both",
            "Name index and columns of the frame for the labels",
        )
    table = np.asarray(costs, dtype=np.float64)
    names = [str(label) for label in labels]
    rows = [list(map(str, index)).index(name) for name in names]
    return table[rows][:, [list(map(str, columns)).index(name) for name in names]]


def abstention_costs(abstain: Any, classes: np.ndarray) -> np.ndarray:
    """What abstaining costs for each truth (k,), from one number or k of them."""
    check_sign(abstain, "abstain_cost")
    table = np.asarray(abstain, dtype=np.float64)
    if table.shape not in ((), (len(classes),)):
        raise InputError(
            f"abstain_cost has the shape {table.shape}",
            f"one number, or one for each of the {len(classes)} labels",
            "Pass for instance abstain_cost=0.2",
        )
    return np.broadcast_to(table, (len(classes),))


def threshold(costs: np.ndarray, abstain: np.ndarray | None) -> tuple[float, float]:
    """The probabilities of the second class where the decision changes (lower, upper).

    Up to the lower one the first class is decided, from the upper one on the second, between them
    nothing; without abstention both are the same. Where one decision is never worse than another
    there may be no such number, and both are NaN.

    >>> threshold(np.array([[0.0, 10.0], [1.0, 0.0]]), None)  # 1/(1 + 10)
    (0.09090909090909091, 0.09090909090909091)
    """
    (c00, c01), (c10, c11) = costs
    if not (c10 > c00 and c01 > c11):
        return float("nan"), float("nan")
    middle = float((c10 - c00) / ((c10 - c00) + (c01 - c11)))
    if abstain is None:
        return middle, middle
    a0, a1 = abstain
    # The first costs c00 + (c01 − c00)p, abstaining a0 + (a1 − a0)p, the second c10 + (c11 − c10)p.
    low = _crossing(a0 - c00, (c01 - c00) - (a1 - a0))
    high = _crossing(c10 - a0, (a1 - a0) - (c11 - c10))
    return (low, high) if low < high else (middle, middle)


def _crossing(height: float, slope: float) -> float:
    """Where slope · p reaches height, within [0, 1]."""
    if slope <= 0:
        return 0.0 if height < 0 else 1.0
    return float(np.clip(height / slope, 0.0, 1.0))
