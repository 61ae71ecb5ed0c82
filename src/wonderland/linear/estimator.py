"""What linear regression and ridge share as estimators: solving, publishing, intervals."""

import sys
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from wonderland.bases.basis import expand, names_of, wobble
from wonderland.core.errors import InputError, InputTypeError, nearest
from wonderland.core.evidence import Claim, Evidence
from wonderland.linear.bayesian_objective import numbers_objective
from wonderland.linear.evidence import claims_of
from wonderland.linear.inference import Facts, infer
from wonderland.linear.model import LinearModel
from wonderland.linear.routes import ROUTES, Outcome, Plan, answer
from wonderland.shell.estimator import Regressor
from wonderland.shell.inputs import Table, read_features
from wonderland.shell.objective import Objective
from wonderland.shell.progress import Progress
from wonderland.shell.streams import Stream
from wonderland.solve.bounds import half_ulp
from wonderland.solve.problem import LeastSquares, LinearFit
from wonderland.solve.run import Stopping
from wonderland.solve.sweep import accumulate, solve_sweep

__all__ = ["LinearEstimator"]


class LinearEstimator(Regressor):
    """The shared part of linear estimators; a subclass says what is penalised."""

    def _check_parameters(self) -> None:
        known = self._solver_names()
        if self.solver not in known:
            raise InputError(
                f"solver is {self.solver!r}",
                f"one of {', '.join(known)}",
                nearest(self.solver, known),
            )
        for name in ("tol", "step_tol", "max_iter", "time_limit"):
            value = getattr(self, name)
            if value is not None and not (np.isreal(value) and value >= 0):
                raise InputError(
                    f"{name} is {value!r}", "a number ≥ 0", f"Leave {name} at its default"
                )
        for name in ("fit_intercept", "copy_X", "positive", "momentum"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise InputTypeError(
                    f"{name} is {getattr(self, name)!r}", "True or False", f"Pass {name}=True"
                )
        if self.basis is not None and not callable(self.basis):
            raise InputTypeError(
                f"basis is {self.basis!r}",
                "a callable (n, d) → (n, m), or None",
                "Pass for instance wl.bases.Polynomial(2)",
            )

    @abstractmethod
    def _solver_names(self) -> tuple[str, ...]:
        """Names accepted for `solver`."""

    def _state(self, table: Table, alpha: np.ndarray) -> LeastSquares:
        """The problem in numbers: the basis expanded, with what rounding took from it."""
        X, low, moved = table.X, None, None
        if self.basis is not None:
            X, low, moved = self._expanded(_dense(X))
        return LeastSquares(X, table.y, table.weight, alpha, bool(self.fit_intercept), low, moved)

    def _expanded(self, X: np.ndarray) -> tuple[Any, Any, Any]:
        columns = expand(self.basis, X)
        if not np.isfinite(columns.high).all():
            raise InputError(
                "the basis returned NaN or infinity",
                "finite columns",
                "Scale X (sklearn.preprocessing.StandardScaler), or lower the degree",
            )
        low = columns.low if columns.low.any() else None
        return columns.high, low, wobble(self.basis, X, half_ulp(X))

    def _column_names(self, names: Sequence[str], count: int) -> list[str]:
        features = [str(name) for name in names]
        return features if self.basis is None else names_of(self.basis, features, count)

    def _facts(self, problem: LeastSquares, table: Table) -> Facts:
        names = self._column_names(table.names, problem.X.shape[1])
        return Facts.of(problem, names=names, flat=table.flat, dtype=table.dtype)

    def _plan(self, route: str) -> Plan:
        limit = DEFAULT_STEPS if self.max_iter is None else int(self.max_iter)
        stopping = Stopping(float(self.tol), float(self.step_tol), limit, self.time_limit)
        progress = Progress("steps", limit) if sys.stderr.isatty() else None
        told = None if progress is None else lambda state: progress(float(state.count))
        return Plan(route, stopping, bool(self.momentum), told)

    def _answer(self, problem: LeastSquares) -> Outcome:
        route = "positive" if self.positive else ROUTES[self.solver]
        return answer(problem, self._plan(route))

    def _learn_stream(self, stream: Stream) -> dict[str, Any]:
        """One pass over the chunks into moments of doubled precision, then the same evidence."""
        if self.positive or ROUTES[self.solver] != "direct":
            raise InputError(
                f"solver={self.solver!r}, positive={self.positive!r} for data read in chunks",
                "a direct solver, which needs one pass over the data",
                "Pass solver='auto' and positive=False, or data in memory",
            )
        alpha = self._alphas(len(stream.targets))
        chunks: Iterable[Any] = stream.chunks
        if self.basis is not None:
            chunks = ((self._expanded(X)[0], y, weight) for X, y, weight in chunks)
        intercept = bool(self.fit_intercept)
        with Progress("rows", stream.total) as progress:
            totals = accumulate(chunks, fit_intercept=intercept, progress=progress)
        outcome = Outcome(solve_sweep(totals, alpha, intercept))
        names = self._column_names(stream.names, len(outcome.fit.coef))
        facts = Facts(totals.mass, totals.rows, alpha, names, stream.flat, np.dtype(np.float64))
        return {**self._publish(outcome, facts), **self._told(outcome)}

    @abstractmethod
    def _alphas(self, outputs: int) -> np.ndarray:
        """The penalty of each output (t,)."""

    @abstractmethod
    def _told(self, outcome: Outcome) -> dict[str, Any]:
        """Fitted attributes of this estimator alone."""

    def _publish(self, outcome: Outcome, facts: Facts, *extra: Claim) -> dict[str, Any]:
        """Fitted attributes from an answer."""
        fit = outcome.fit
        coef, intercept = self._shaped(fit, facts)
        claims = claims_of(outcome, facts, tol=float(self.tol))
        variance = fit.rss / facts.mass
        return {
            "coef_": coef,
            "intercept_": intercept,
            "rank_": fit.rank,
            "model_": LinearModel(coef, intercept, self.basis),
            "evidence_": Evidence([*claims, *extra]),
            "status_": outcome.status,
            "noise_variance_": float(variance[0]) if facts.flat else variance,
            "_inference": infer(fit, facts, fit_intercept=bool(self.fit_intercept)),
            "_flat": facts.flat,
        }

    def _shaped(self, fit: LinearFit, facts: Facts) -> tuple[Any, Any]:
        """coef_ (d,) or (t, d) and intercept_, in the floating type of X."""
        coef = fit.coef[:, 0] if facts.flat else np.ascontiguousarray(fit.coef.T)
        intercept = fit.intercept[0] if facts.flat else fit.intercept
        if not self.fit_intercept:
            return coef.astype(facts.dtype), 0.0
        return coef.astype(facts.dtype), intercept.astype(facts.dtype)

    def _objective(self, X: Any, y: Any, sample_weight: Any) -> Objective:
        """The log posterior at this fit, for `wl.Posterior`."""
        table = self._read_aside(X, y, sample_weight)
        noise = np.square(self.residual_deviation_)
        return numbers_objective(self, table, getattr(self, "alpha_", 0.0), noise)

    def _predict(self, X: Any) -> np.ndarray:
        if self.basis is not None:
            X = _dense(X)
        elif not sp.issparse(X) and X.dtype != self.coef_.dtype:
            X = X.astype(np.float64)
        return np.asarray(self.model_.predict(X))

    @property
    def residual_deviation_(self) -> Any:
        """s = √(Σωr²/(n − p)): the standard deviation of the noise, per output."""
        self._require_fit()
        return self._per_output(np.sqrt(self._inference.variance))

    @property
    def standard_errors_(self) -> np.ndarray:
        """Standard error of each coefficient, shaped like `coef_`; infinite where undetermined."""
        slopes = self._errors()[int(self.fit_intercept) :]
        return slopes[:, 0] if self.coef_.ndim == 1 else slopes.T

    @property
    def intercept_standard_error_(self) -> Any:
        """Standard error of the intercept; zero when none is fitted."""
        errors = self._errors()[0]
        return self._per_output(errors if self.fit_intercept else np.zeros_like(errors))

    def confidence_interval(
        self, level: float = 0.95, *, intercept: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Intervals that cover each true coefficient with probability `level` under normal noise.

        w_j ± t_{(1+level)/2}(n − p) · s·√C_jj.

        Args:
            level: Between 0 and 1.
            intercept: Give the interval of the intercept instead.

        Returns:
            (low, high), each in the shape of `coef_` (or `intercept_`).
        """
        self._require_fit()
        middle = self.intercept_ if intercept else self.coef_
        error = self.intercept_standard_error_ if intercept else self.standard_errors_
        half = self._inference.quantile(level) * error
        return middle - half, middle + half

    def prediction_interval(self, X: Any, level: float = 0.95) -> tuple[Any, Any]:
        """Intervals that cover a new target at x with probability `level` under normal noise.

        f(x) ± t_{(1+level)/2}(n − p) · s·√(1 + zᵀCz),  z = [1, φ(x)].

        Returns:
            (low, high), each like `predict(X)`.
        """
        self._require_fit()
        read = _dense(read_features(self, X))
        middle = self._predict(read)
        error = self._inference.spread(self._columns(read))
        half = self._inference.quantile(level) * (error[:, 0] if middle.ndim == 1 else error)
        return self._contain(middle - half, X), self._contain(middle + half, X)

    def _columns(self, X: np.ndarray) -> np.ndarray:
        """Z = [1, φ(X)] (n, p)."""
        Z = X.astype(np.float64) if self.basis is None else np.asarray(self.basis(X))
        return np.hstack([np.ones((len(Z), 1)), Z]) if self.fit_intercept else Z

    def _errors(self) -> np.ndarray:
        """Standard errors (p, t), intercept first."""
        self._require_fit()
        return self._inference.errors(self.coef_.shape[-1] + int(self.fit_intercept))

    def _per_output(self, values: np.ndarray) -> Any:
        return float(values[0]) if self._flat else values


DEFAULT_STEPS = 100_000  # of descent, when max_iter is None


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else X
