"""Networks of one shape fitted together: what `SearchCV` asks of the estimators of networks.

Learning rate, penalties, dropout, the optimiser's settings and the seed are numbers: settings that
differ in nothing else are members of one stack, each with its own rows, and train in one program
(`training.fit_many`). Every member ends with the weights that its own `fit` would have given it.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.errors import InputError
from wonderland.core.evidence import Claim, Evidence
from wonderland.core.status import Status
from wonderland.neural.fit import Trained
from wonderland.neural.network import Data, Plan, plan_of, set_aside
from wonderland.shell.together import NotTogether, Task
from wonderland.training import History, fit_many

__all__ = ["fit_together", "key_of"]

NUMBERS = ("learning_rate_init", "alpha", "weight_decay", "dropout", "random_state")
OPTIONS = ("beta_1", "beta_2", "epsilon", "momentum")


class Member(NamedTuple):
    """One task, planned: which rows of the whole table it learns from and is judged on."""

    estimator: Any
    plan: Plan
    rows: np.ndarray
    held: np.ndarray | None


def key_of(estimator: Any) -> Hashable:
    """What settings must have in common to train in one program."""
    parameters = estimator.get_params(deep=False)
    others = [(n, repr(v)) for n, v in parameters.items() if n not in (*NUMBERS, *OPTIONS)]
    # A rate of zero is a network without masks.
    return type(estimator), bool(estimator.dropout), tuple(others)


def fit_together(tasks: Sequence[Task], X: Any, y: Any, sample_weight: Any) -> list[Any]:
    """The fitted estimator of each task, or the error of its fit.

    Args:
        tasks: With one `key_of`.
        X: The whole table (n, d).
        y: Targets.
        sample_weight: (n,) or None.
    """
    first = tasks[0].estimator
    _refuse(first)
    table = first._read_whole(X, y, sample_weight)
    encoded = first._encoded(table)
    members = _planned(tasks, encoded)
    done: dict[int, Any] = {}
    for group in _by_batch(members):
        done |= zip(group, _trained([members[i] for i in group], encoded[2]), strict=True)
    return [_fitted(members[i], done[i], first, table) for i in range(len(tasks))]


def _refuse(estimator: Any) -> None:
    """Raise the reason where a stack of such networks cannot be trained."""
    reasons = {
        "solver='lbfgs' takes all samples at once": estimator.solver == "lbfgs",
        "learning_rate='adaptive' looks at each fit from outside": (
            estimator.solver == "sgd" and estimator.learning_rate == "adaptive"
        ),
        "a recipe of one's own may hold callbacks": estimator.recipe is not None,
        "warm_start goes on from one fit": bool(estimator.warm_start),
        "time_limit is for one fit": estimator.time_limit is not None,
        f"architecture={estimator.architecture!r} looks at the rows before it is built": (
            estimator.architecture != "mlp"
        ),
        "class_weight='balanced' depends on the rows": (
            getattr(estimator, "class_weight", None) == "balanced"
        ),
    }
    for reason, holds in reasons.items():
        if holds:
            raise NotTogether(reason)


def _planned(tasks: Sequence[Task], encoded: tuple[Any, int, Data]) -> list[Member]:
    """The plan of each task; tasks with the same rows share one copy of them."""
    head, outputs, data = encoded
    folds: dict[bytes, Data] = {}
    members = []
    for task in tasks:
        fold = folds.setdefault(task.rows.tobytes(), data.take(task.rows))
        if head.name in ("bits", "classes") and len(np.unique(fold.y)) < max(outputs, 2):
            raise NotTogether("a fold lacks one of the classes")
        task.estimator._check_parameters()
        plan = plan_of(task.estimator, fold, head, outputs)
        rows, held = task.rows, None
        if plan.held is not None:
            stratify = fold.y if head.name in ("bits", "classes") else None
            share = task.estimator.validation_fraction
            inside, aside = set_aside(len(fold), share, stratify, plan.seed)
            rows, held = task.rows[inside], task.rows[aside]
        members.append(Member(task.estimator, replace(plan, data=fold), rows, held))
    return members


def _by_batch(members: Sequence[Member]) -> Iterable[list[int]]:
    """Members of one batch size, which "auto" may make differ between small folds."""
    groups: dict[int, list[int]] = {}
    for place, member in enumerate(members):
        groups.setdefault(int(member.plan.recipe.batch_size or 0), []).append(place)
    return groups.values()


def _trained(members: Sequence[Member], data: Data) -> list[Trained]:
    """Train a group in one program."""
    plans = [member.plan for member in members]
    rows, counts = _padded([member.rows for member in members])
    judged: dict[str, Any] = {}
    if members[0].held is not None:
        held, held_counts = _padded([np.asarray(member.held) for member in members])
        judged = {"held_out": held, "held_counts": held_counts}
    found = fit_many(
        [plan.model for plan in plans],
        plans[0].head.loss,
        data.parts,
        recipe=plans[0].recipe,
        numbers=_numbers(plans),
        rows=rows,
        counts=counts,
        keys=[plan.seed for plan in plans],
        **judged,
    )
    return _apart(found, len(plans))


def _numbers(plans: Sequence[Plan]) -> dict[str, np.ndarray]:
    recipes = [plan.recipe for plan in plans]
    named = {
        name: np.array([getattr(recipe, name) for recipe in recipes], float)
        for name in ("learning_rate", "l2", "weight_decay")
    }
    options = recipes[0].options
    return named | {name: np.array([r.options[name] for r in recipes], float) for name in options}


def _padded(rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    counts = np.array([len(row) for row in rows])
    table = np.zeros((len(rows), counts.max()), np.int32)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return table, counts


def _apart(found: Any, count: int) -> list[Trained]:
    """Each member's own model, history and status."""
    arrays, static = eqx.partition(found.model, eqx.is_array)
    host = jax.tree.map(np.asarray, arrays)
    history = found.evidence["history"]
    members = []
    for place in range(count):
        own = jax.tree.map(lambda leaf, i=place: jnp.asarray(leaf[i]), host)
        status = Status(int(found.status[place]))
        members.append(Trained(eqx.combine(own, static), status, _own(history, place), np.nan))
    return members


def _own(history: History, place: int) -> History:
    epochs = int(np.isfinite(history.loss[:, place]).sum())
    columns = {
        name: (column if column.ndim == 1 else column[:, place])[:epochs]
        for name, column in vars(history).items()
    }
    return History(**columns)


def _fitted(member: Member, trained: Trained, first: Any, table: Any) -> Any:
    """The estimator with what its training gave, or the error."""
    estimator = member.estimator
    if trained.status is Status.DIVERGED:
        return InputError(
            "the loss left the finite numbers "
            f"at learning_rate_init={estimator.learning_rate_init:g}",
            "a step short enough for the curvature of this loss",
            "Leave so large a learning rate out of the space, or scale the columns of X",
        )
    learned = estimator._attributes(member.plan, trained, table)
    known = {n: v for n, v in vars(first).items() if n in ("n_features_in_", "feature_names_in_")}
    claims = [
        Claim.fact("solver", f"{estimator.solver}, together with others", "how it was found"),
        Claim.fact("training_curve", trained.history.loss, "mean training loss of each epoch"),
    ]
    own = {"evidence_": Evidence(claims), "t_": len(trained.history) * len(member.rows)}
    estimator.__dict__.update({**known, **estimator._fixed(table), **learned, **own})
    return estimator
