"""The manners that classifiers and regressors of networks share: fit, go on, attributes."""

import time
from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import replace
from typing import Any, Self

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from wonderland.core.cache import enable_compile_cache
from wonderland.core.errors import InputError
from wonderland.core.status import Status
from wonderland.neural.columns import Encoder, fit_encoder
from wonderland.neural.committee import Setting, elect
from wonderland.neural.committee_evidence import (
    committee_attributes,
    committee_claims,
    spread_of,
)
from wonderland.neural.evidence import claims_of
from wonderland.neural.fit import Trained, fit_full_batch, run_plan
from wonderland.neural.forward import raw_outputs
from wonderland.neural.heads import Head
from wonderland.neural.lbfgs import Limits
from wonderland.neural.network import (
    Data,
    Plan,
    ended,
    plan_of,
    random_state_of,
    with_epochs,
)
from wonderland.neural.objective import network_objective
from wonderland.neural.parameters import check_network
from wonderland.neural.schedules import Plateau
from wonderland.neural.slopes import validation_slopes
from wonderland.neural.together import fit_together, key_of
from wonderland.shell.estimator import Estimator
from wonderland.shell.frames import read_columns
from wonderland.shell.inputs import read_features
from wonderland.shell.objective import Objective

__all__ = ["Network", "dense"]


class Network(Estimator):
    """A multilayer perceptron with scikit-learn's parameters; a subclass says what y means.

    A subclass has `_encoded`, which gives the head, the number of raw outputs and the data.
    """

    # A target that never varies is a task like any other: nothing is singular about it.
    fit_intercept = False

    model_: Any
    head_: str
    encoder_: Encoder
    units_: Any
    t_: int

    def _check_parameters(self) -> None:
        check_network(self)
        if self._get("architecture") == "table" and self._get("warm_start"):
            raise InputError(
                "warm_start=True with architecture='table'",
                "a committee trained from its beginning: each member stops by its own fold",
                "Pass warm_start=False, or architecture='mlp'",
            )

    @abstractmethod
    def _encoded(self, table: Any) -> tuple[Head, int, Data]:
        """(head, raw outputs, data) of a validated table."""

    @abstractmethod
    def _head(self) -> Head:
        """The head of the fitted network."""

    def _learn_table(self, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        """`architecture="table"`: columns as they are, a committee, no number to tune."""
        columns = read_columns(self, X, reset=True)
        encoder = fit_encoder(columns)
        reader = type(self)(**self.get_params(deep=False))
        table = reader._read_target(encoder.encode(columns), y, sample_weight)
        head, outputs, data = self._encoded(table)
        units, data = self._in_units(data)
        seed = int(random_state_of(self._get("random_state")).randint(2**31 - 1))
        began = time.perf_counter()
        elected = elect(data, head, outputs, encoder, self._setting(), seed)
        seconds = time.perf_counter() - began
        return {
            **self._fixed(table),
            **committee_attributes(elected, head, data),
            "encoder_": encoder,
            "units_": units,
            "spread_": spread_of(elected, head, data),
            "evidence_": committee_claims(elected, head, data, seconds),
        }

    @abstractmethod
    def _read_target(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """A validated table of encoded columns."""

    @abstractmethod
    def _setting(self) -> Setting:
        """The committee for this kind of target."""

    def _in_units(self, data: Data) -> tuple[Any, Data]:
        """((centre, scale), data in these units) where targets are numbers."""
        return None, data

    def _read(self, X: Any) -> Any:
        """Validated, for "table" encoded, X for prediction."""
        self._require_fit()
        if self._get("architecture") == "table":
            return self.encoder_.encode(read_columns(self, X, reset=False))
        return read_features(self, X)

    def _fit(self, table: Any) -> dict[str, Any]:
        head, outputs, data = self._encoded(table)
        start = self._start(data, outputs) if self._warm() else None
        plan = plan_of(self, data, head, outputs, start)
        trained = self._run(plan)
        return self._published(plan, trained, table)

    def _warm(self) -> bool:
        return bool(getattr(self, "warm_start", False)) and hasattr(self, "model_")

    def _run(self, plan: Plan) -> Trained:
        if self._solver() == "lbfgs":
            limits = Limits(int(self._get("max_iter")), int(self._get("max_fun")), self._get("tol"))
            return fit_full_batch(plan, float(self._get("alpha")), limits)
        adaptive = self._solver() == "sgd" and self._get("learning_rate") == "adaptive"
        plateau = None
        if adaptive and self._get("recipe") is None:
            held = plan.held is not None
            plateau = Plateau(self._get("n_iter_no_change"), self._get("tol"), by_score=held)
        return run_plan(plan, plateau=plateau)

    def _get(self, name: str) -> Any:
        return getattr(self, name)

    def _solver(self) -> str:
        return str(self._get("solver"))

    def _start(self, data: Data, outputs: int) -> Any:
        """The network of the last fit, where its shapes fit these data."""
        model = self.model_
        first, last = model.linears[0].weight.shape[0], model.linears[-1].weight.shape[1]
        if (first, last) != (data.X.shape[1], outputs):
            raise InputError(
                f"warm_start from a network of {first} inputs and {last} outputs",
                f"{data.X.shape[1]} inputs and {outputs} outputs, as these data have",
                "Pass warm_start=False, or the columns and targets of the last fit",
            )
        return model

    def _published(self, plan: Plan, trained: Trained, table: Any) -> dict[str, Any]:
        """Fitted attributes and their evidence."""
        solver = self._solver() if self._get("recipe") is None else "recipe"
        evidence = claims_of(plan, trained, solver)
        return {**self._attributes(plan, trained, table), "evidence_": evidence}

    def _attributes(self, plan: Plan, trained: Trained, table: Any) -> dict[str, Any]:
        """Fitted attributes, by scikit-learn's names."""
        status = ended(trained.status, own_recipe=self._get("recipe") is not None)
        curve, linears = trained.history, trained.model.linears
        scores = curve.score if plan.held is not None else None
        losses = [float(loss) for loss in curve.loss]
        learned = {
            "model_": trained.model,
            "coefs_": [np.asarray(linear.weight, table.dtype) for linear in linears],
            "intercepts_": [np.asarray(linear.bias, table.dtype) for linear in linears],
            "n_iter_": len(curve),
            "n_layers_": len(linears) + 1,
            "n_outputs_": int(linears[-1].weight.shape[1]),
            "out_activation_": plan.head.activation,
            "loss_": losses[-1] if losses else np.nan,
            "t_": len(curve) * len(plan.data),
            "history_": curve,
            "status_": status,
            "_memory": trained.memory,
        }
        if self._solver() != "lbfgs" or self._get("recipe") is not None:
            learned |= {
                "loss_curve_": losses,
                "best_loss_": None if plan.held is not None else min(losses, default=np.inf),
                "validation_scores_": None if scores is None else [float(s) for s in scores],
                "best_validation_score_": None if scores is None else float(np.nanmax(scores)),
            }
        return learned

    def _go_on(self, table: Any) -> dict[str, Any]:
        """One epoch more, with the optimiser as the last one left it."""
        head, outputs, data = self._encoded(table)
        begun = hasattr(self, "model_")
        start = self._start(data, outputs) if begun else None
        plan = plan_of(self, data, head, outputs, start)
        seen = int(getattr(self, "t_", 0))
        plan = _one_epoch(plan, seen)
        trained = run_plan(plan, memory=getattr(self, "_memory", None))
        learned = self._published(plan, trained, table)
        curve = [*getattr(self, "loss_curve_", []), *learned["loss_curve_"]]
        return {
            **learned,
            "loss_curve_": curve,
            "best_loss_": min(curve),
            "t_": seen + learned["t_"],
            "n_iter_": len(curve),
            "status_": Status.SOLVED,
        }

    def _continue(self, *arguments: Any) -> Self:
        """`partial_fit` as a transaction."""
        enable_compile_cache()
        self._refuse_partial()
        before = dict(self.__dict__)
        try:
            self._check_parameters()
            table = self._read_part(*arguments)
            learned = {**self._fixed(table), **self._go_on(table)}
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        self.__dict__.update(learned)
        return self

    @abstractmethod
    def _read_whole(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """The validated table of a search, whose tasks learn from some of its rows each."""

    def _objective(self, X: Any, y: Any, sample_weight: Any) -> Objective:
        """The log posterior at these weights, for `wl.Posterior`."""
        return network_objective(self, self._read_whole(X, y, sample_weight))

    def _together_key(self) -> Hashable:
        return key_of(self)

    @staticmethod
    def _fit_together(tasks: Any, X: Any, y: Any, sample_weight: Any) -> list[Any]:
        return fit_together(tasks, X, y, sample_weight)

    def _validation_slopes(
        self, names: list[str], X: Any, y: Any, sample_weight: Any, splits: Any
    ) -> Any:
        """For `SearchCV(method="gradient")`."""
        return validation_slopes(self, names, (X, y, sample_weight), splits)

    @abstractmethod
    def _read_part(self, *arguments: Any) -> Any:
        """The validated part of the samples."""

    @abstractmethod
    def _fixed(self, table: Any) -> dict[str, Any]:
        """Attributes that the table alone decides."""

    def _refuse_partial(self) -> None:
        if self._get("architecture") == "table":
            raise InputError(
                "partial_fit with architecture='table'",
                "all samples at once: each member is judged on a fold of them",
                "Pass architecture='mlp', or call fit",
            )
        if self._solver() == "lbfgs":
            raise AttributeError(
                "partial_fit is only available for stochastic optimizers. lbfgs is not stochastic. "
                "Expected solver='adam' or 'sgd'. Pass one of them."
            )
        if self._get("early_stopping"):
            raise InputError(
                "partial_fit with early_stopping=True",
                "no validation part: each call is one epoch of what it is given",
                "Pass early_stopping=False; partial_fit does not support early_stopping=True",
            )

    def _raw(self, X: Any) -> np.ndarray:
        """Raw outputs (n, c) for validated X."""
        table = self._get("architecture") == "table"
        return raw_outputs(self.model_, X if table else dense(X))

    def _answer(self, X: Any) -> np.ndarray:
        return np.asarray(self._head().answer(jnp.asarray(self._raw(X), jnp.float32)), float)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        if self._get("architecture") == "table":
            tags.input_tags.allow_nan = True
            tags.input_tags.categorical = True
            tags.input_tags.string = True
        return tags


def _one_epoch(plan: Plan, seen: int) -> Plan:
    recipe = with_epochs(plan.recipe, 1)
    return replace(plan, recipe=recipe, seed=(plan.seed + seen) % 2**31)


LARGEST = 1 << 32  # bytes of a dense table that a sparse one may become


def dense(X: Any) -> np.ndarray:
    """A dense table; a sparse one is written out where memory allows."""
    if not sp.issparse(X):
        return np.asarray(X)
    needed = 4 * X.shape[0] * X.shape[1]
    if needed > LARGEST:
        raise InputError(
            f"a sparse table that would take {needed / 2**30:.0f} GiB when written out",
            "a table whose dense form fits: the layers of a network are dense",
            "Reduce its columns first, for instance with sklearn.decomposition.TruncatedSVD",
        )
    return X.toarray()
