"""Regression by a multilayer perceptron: means, rates, spreads or quantiles.

    minimise over W, b:   Σ_i ω_i ℓ(f(x_i), y_i)/Σ_i ω_i  +  α/(2b) Σ_l ‖W_l‖²

with ℓ half the squared error, half the Poisson deviance, the negative log-likelihood of a normal
distribution whose variance depends on x, or the pinball losses of several levels. Shapes: X (n, d),
y (n,) or (n, t).

References: Nix & Weigend (1994) for the spread; Koenker & Bassett (1978) for quantiles.
"""

from dataclasses import replace
from typing import Any, Self

import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri

from wonderland.core.errors import InputError, nearest
from wonderland.neural.committee import NUMBERS_SETTING, Setting
from wonderland.neural.estimator import Network, dense
from wonderland.neural.heads import GAUSSIAN, POISSON, SQUARED, Head, quantile, split
from wonderland.neural.network import Data
from wonderland.shell.estimator import Regressor
from wonderland.shell.inputs import Table, read_features, read_table
from wonderland.shell.streams import is_stream

__all__ = ["MLPRegressor"]

LOSSES = ("squared_error", "poisson", "gaussian", "quantile")


class MLPRegressor(Network, Regressor):
    """A multilayer perceptron for numbers.

    Parameters, defaults and attributes are scikit-learn's (see `MLPClassifier` for those that both
    have); a whole epoch is one compiled program, in float32.

    Args:
        loss: "squared_error", "poisson" (log link), "gaussian" (mean and spread) or "quantile".
        hidden_layer_sizes: Widths of the hidden layers.
        activation: As in `MLPClassifier`, like all that is not named here.
        solver, alpha, batch_size, learning_rate, learning_rate_init, power_t, max_iter, shuffle,
            random_state, tol, verbose, warm_start, momentum, nesterovs_momentum, early_stopping,
            validation_fraction, beta_1, beta_2, epsilon, n_iter_no_change, max_fun, architecture,
            dropout, norm, weight_decay, schedule, time_limit, recipe: As in `MLPClassifier`.
        quantiles: Levels of "quantile", increasing; `predict` gives the one nearest to 0.5.

    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> fitted = MLPRegressor(hidden_layer_sizes=(20,), solver="lbfgs", random_state=0)
    >>> bool(fitted.fit(X, X[:, 0] ** 2).score(X, X[:, 0] ** 2) > 0.99)
    True
    """

    def __init__(
        self,
        loss: str = "squared_error",
        hidden_layer_sizes: Any = (100,),
        activation: Any = "relu",
        *,
        solver: str = "adam",
        alpha: float = 0.0001,
        batch_size: Any = "auto",
        learning_rate: str = "constant",
        learning_rate_init: float = 0.001,
        power_t: float = 0.5,
        max_iter: int = 200,
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: bool = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: float = 10,
        max_fun: int = 15000,
        quantiles: Any = (0.05, 0.5, 0.95),
        architecture: str = "mlp",
        dropout: float = 0.0,
        norm: str | None = None,
        weight_decay: float = 0.0,
        schedule: Any = None,
        time_limit: float | None = None,
        recipe: Any = None,
    ) -> None:
        self.loss = loss
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.power_t = power_t
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.warm_start = warm_start
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.n_iter_no_change = n_iter_no_change
        self.max_fun = max_fun
        self.quantiles = quantiles
        self.architecture = architecture
        self.dropout = dropout
        self.norm = norm
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.time_limit = time_limit
        self.recipe = recipe

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.loss not in LOSSES:
            raise InputError(
                f"loss is {self.loss!r}", f"one of {', '.join(LOSSES)}", nearest(self.loss, LOSSES)
            )
        levels = np.asarray(self.quantiles, float)
        if levels.ndim != 1 or not len(levels) or np.any(np.diff([0.0, *levels, 1.0]) <= 0):
            raise InputError(
                f"quantiles is {self.quantiles!r}",
                "increasing levels strictly between 0 and 1",
                "Pass quantiles=(0.05, 0.5, 0.95)",
            )

    def _levels(self) -> tuple[float, ...]:
        return tuple(float(level) for level in self.quantiles)

    def _head(self) -> Head:
        fixed = {"squared_error": SQUARED, "poisson": POISSON, "gaussian": GAUSSIAN}
        return fixed.get(self.loss) or quantile(self._levels())

    def _encoded(self, table: Table) -> tuple[Head, int, Data]:
        if self.loss == "poisson" and np.any(table.y < 0):
            raise InputError(
                "y holds negative numbers with loss='poisson'",
                "counts or rates ≥ 0",
                "Pass loss='squared_error', or check the target",
            )
        each = {"gaussian": 2, "quantile": len(self._levels())}.get(self.loss, 1)
        y = table.y.astype(np.float32)
        data = Data(dense(table.X).astype(np.float32), y, table.weight)
        return self._head(), each * y.shape[1], data

    def _fixed(self, table: Table) -> dict[str, Any]:
        return {"target_names_": table.targets}

    def _learn(self, *data: Any) -> dict[str, Any]:
        if self.architecture == "table" and not is_stream(data[0]):
            return self._learn_table(*data)
        return super()._learn(*data)

    def _read_target(self, X: Any, y: Any, sample_weight: Any) -> Table:
        return read_table(self, X, y, sample_weight)

    def _setting(self) -> Setting:
        return NUMBERS_SETTING

    def _in_units(self, data: Data) -> tuple[Any, Data]:
        """Targets with mean 0 and deviation 1 (rates: with mean 1)."""
        weight = np.ones(len(data)) if data.weight is None else data.weight
        y = np.asarray(data.y, float)
        centre = np.average(y, axis=0, weights=weight)
        scale = np.sqrt(np.average((y - centre) ** 2, axis=0, weights=weight))
        if self.loss == "poisson":
            centre, scale = np.zeros_like(centre), centre
        scale = np.where(scale > 0, scale, 1.0)
        return (centre, scale), replace(data, y=((y - centre) / scale).astype(np.float32))

    def _predict(self, X: Any) -> np.ndarray:
        answer = self._means(X)
        if self.loss == "quantile":
            answer = answer[..., int(np.argmin(np.abs(np.subtract(self._levels(), 0.5))))]
        return answer[:, 0] if answer.shape[1] == 1 else answer

    def _means(self, X: Any) -> np.ndarray:
        """Means (n, t), or quantiles (n, t, q)."""
        if self.architecture != "table":
            return self._answer(X)
        raw, (centre, scale) = self._raw(X), self.units_
        head = self._head()
        each = [np.asarray(head.answer(jnp.asarray(z)), float) for z in np.moveaxis(raw, 1, 0)]
        mean = np.mean(each, axis=0)
        if self.loss == "quantile":
            return mean * scale[:, None] + centre[:, None]
        return mean * scale + centre

    def _moments(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """(mean, standard deviation), each (n, t); of a committee those of the mixture."""
        mean, spread = (np.asarray(part, float) for part in split(self._raw(X)))
        variance = np.exp(spread)
        if self.architecture != "table":
            return mean, np.sqrt(variance)
        centre, scale = self.units_
        middle = mean.mean(axis=1)
        mixed = (self.spread_ * variance + mean**2).mean(axis=1) - middle**2
        return middle * scale + centre, np.sqrt(mixed) * scale

    def predict(self, X: Any, *, return_std: bool = False) -> Any:
        """The mean (for "quantile" the median), (n,) or (n, t).

        Args:
            X: (n, d).
            return_std: Whether to give also the standard deviation, for loss="gaussian".
        """
        if not return_std:
            return self._contain(self._predict(self._read(X)), X)
        self._require_fit()
        if self.loss != "gaussian":
            raise InputError(
                f"return_std=True with loss={self.loss!r}",
                "a network that has learnt a spread",
                "Pass loss='gaussian' to the constructor",
            )
        pair = self._moments(self._read(X))
        flat = tuple(part[:, 0] if part.shape[1] == 1 else part for part in pair)
        return tuple(self._contain(part, X) for part in flat)

    def predict_quantiles(self, X: Any, quantiles: Any = None) -> np.ndarray:
        """Quantiles (n, q), or (n, t, q) of several outputs, never crossing.

        Args:
            X: (n, d).
            quantiles: Levels, for loss="gaussian"; "quantile" gives those it has learnt.
        """
        read = self._read(X)
        if self.loss == "gaussian":
            levels = self._levels() if quantiles is None else np.asarray(quantiles, float)
            mean, std = (part[..., None] for part in self._moments(read))
            found = mean + std * ndtri(levels)
        elif self.loss == "quantile" and quantiles is None:
            found = self._means(read)
        else:
            raise InputError(
                f"quantiles of a network with loss={self.loss!r}",
                "loss='gaussian', or loss='quantile' with the levels given to the constructor",
                "Pass loss='quantile' and quantiles=(...) to the constructor",
            )
        return found[:, 0] if found.shape[1] == 1 else found

    def prediction_interval(self, X: Any, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) that hold a new target with this probability, for loss="gaussian".

        Args:
            X: (n, d).
            level: Probability.
        """
        ends = self.predict_quantiles(X, [0.5 - 0.5 * level, 0.5 + 0.5 * level])
        return ends[..., 0], ends[..., 1]

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """One epoch over these samples, from where the last one ended.

        Args:
            X: (n, d).
            y: (n,) or (n, t).
            sample_weight: (n,) ≥ 0.
        """
        return self._continue(X, y, sample_weight)

    def _read_whole(self, X: Any, y: Any, sample_weight: Any) -> Table:
        return read_table(self, X, y, sample_weight)

    def _read_part(self, *arguments: Any) -> Table:
        X, y, sample_weight = arguments
        if hasattr(self, "model_"):
            read_features(self, X)  # the columns must be those of before
        return read_table(self, X, y, sample_weight)
