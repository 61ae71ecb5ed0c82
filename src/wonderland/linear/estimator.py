"""What linear regression and ridge share as estimators: solving, publishing, intervals."""

import sys
from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import stdtrit

from wonderland.bases.basis import expand, names_of, wobble
from wonderland.core.errors import InputError, InputTypeError, nearest
from wonderland.core.evidence import Claim, Evidence
from wonderland.linear.evidence import claims_of
from wonderland.linear.model import LinearModel
from wonderland.linear.routes import ROUTES, Outcome, Plan, answer
from wonderland.shell.estimator import Regressor
from wonderland.shell.inputs import Table
from wonderland.shell.progress import Progress
from wonderland.solve.bounds import half_ulp
from wonderland.solve.problem import LeastSquares, LinearFit
from wonderland.solve.run import Stopping

__all__ = ["Inference", "LinearEstimator"]


class Inference(NamedTuple):
    """What errors of coefficients and predictions are computed from.

    Attributes:
        covariance: Covariance of [intercept; slopes] for unit noise (p, p); None where the
            columns are dependent or outputs have penalties of their own.
        freedom: Residual degrees of freedom n − p (effective p, for ridge).
        variance: s² = Σωr²/freedom per output (t,).
    """

    covariance: np.ndarray | None
    freedom: float
    variance: np.ndarray


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

    def _column_names(self, table: Table, count: int) -> list[str]:
        names = [str(name) for name in table.names]
        return names if self.basis is None else names_of(self.basis, names, count)

    def _plan(self, route: str) -> Plan:
        limit = DEFAULT_STEPS if self.max_iter is None else int(self.max_iter)
        stopping = Stopping(float(self.tol), float(self.step_tol), limit, self.time_limit)
        progress = Progress("steps", limit) if sys.stderr.isatty() else None
        told = None if progress is None else lambda state: progress(float(state.count))
        return Plan(route, stopping, bool(self.momentum), told)

    def _answer(self, problem: LeastSquares) -> Outcome:
        route = "positive" if self.positive else ROUTES[self.solver]
        return answer(problem, self._plan(route))

    def _publish(
        self, outcome: Outcome, problem: LeastSquares, table: Table, *extra: Claim
    ) -> dict[str, Any]:
        """Fitted attributes from an answer."""
        fit = outcome.fit
        mass, rows = mass_of(problem)
        inference = infer(fit, problem, rows)
        coef, intercept = self._shaped(fit, table)
        claims = claims_of(
            outcome,
            names=self._column_names(table, len(fit.coef)),
            mass=mass,
            rows=rows,
            tol=float(self.tol),
        )
        return {
            "coef_": coef,
            "intercept_": intercept,
            "rank_": fit.rank,
            "model_": LinearModel(coef, intercept, self.basis),
            "evidence_": Evidence([*claims, *extra]),
            "status_": outcome.status,
            "noise_variance_": _per_output(fit.rss / mass, table),
            "_inference": inference,
            "_flat": table.flat,
        }

    def _shaped(self, fit: LinearFit, table: Table) -> tuple[Any, Any]:
        """coef_ (d,) or (t, d) and intercept_, in the floating type of X."""
        coef = fit.coef[:, 0] if table.flat else np.ascontiguousarray(fit.coef.T)
        intercept = fit.intercept[0] if table.flat else fit.intercept
        if not self.fit_intercept:
            return coef.astype(table.dtype), 0.0
        return coef.astype(table.dtype), intercept.astype(table.dtype)

    def _predict(self, X: Any) -> np.ndarray:
        if self.basis is not None:
            X = _dense(X)
        elif not sp.issparse(X) and X.dtype != self.coef_.dtype:
            X = X.astype(np.float64)
        return np.asarray(self.model_.predict(X))

    @property
    def residual_deviation_(self) -> Any:
        """S = √(Σωr²/(n − p)): the standard deviation of the noise, per output."""
        return self._spread(np.sqrt(self._inference.variance))

    @property
    def standard_errors_(self) -> np.ndarray:
        """Standard error of each coefficient, shaped like `coef_`; infinite where undetermined."""
        slopes = self._errors()[len(self._errors()) - self.model_.coef.shape[-1] :]
        return slopes[:, 0] if self.coef_.ndim == 1 else slopes.T

    @property
    def intercept_standard_error_(self) -> Any:
        """Standard error of the intercept; zero when none is fitted."""
        if not self.fit_intercept:
            return self._spread(np.zeros(len(self._inference.variance)))
        return self._spread(self._errors()[0])

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
        middle = self.intercept_ if intercept else self.coef_
        error = self.intercept_standard_error_ if intercept else self.standard_errors_
        half = self._quantile(level) * error
        return middle - half, middle + half

    def prediction_interval(self, X: Any, level: float = 0.95) -> tuple[Any, Any]:
        """Intervals that cover a new target at x with probability `level` under normal noise.

        f(x) ± t_{(1+level)/2}(n − p) · s·√(1 + zᵀCz),  z = [1, φ(x)].

        Returns:
            (low, high), each like `predict(X)`.
        """
        from wonderland.shell.inputs import read_features

        read = _dense(read_features(self, X))
        middle = self._predict(read)
        error = self._prediction_error(read)
        half = self._quantile(level) * (error[:, 0] if middle.ndim == 1 else error)
        return self._contain(middle - half, X), self._contain(middle + half, X)

    def _prediction_error(self, X: np.ndarray) -> np.ndarray:
        """s·√(1 + zᵀCz) for each row and output (n, t)."""
        found = self._inference
        if found.covariance is None:
            return np.full((len(X), len(found.variance)), np.inf)
        Z = X.astype(np.float64) if self.basis is None else np.asarray(self.basis(X))
        if self.fit_intercept:
            Z = np.hstack([np.ones((len(Z), 1)), Z])
        lean = np.maximum(np.einsum("ij,ij->i", Z @ found.covariance, Z), 0.0)
        return np.sqrt((1.0 + lean)[:, None] * found.variance)

    def _errors(self) -> np.ndarray:
        """Standard errors (p, t), intercept first."""
        found = self._inference
        if found.covariance is None:
            return np.full((self._parameters(), len(found.variance)), np.inf)
        diagonal = np.maximum(np.diag(found.covariance), 0.0)
        return np.sqrt(diagonal[:, None] * found.variance)

    def _parameters(self) -> int:
        return int(self.model_.coef.shape[-1]) + int(self.fit_intercept)

    def _quantile(self, level: float) -> float:
        if not 0 < level < 1:
            raise InputError(
                f"level is {level!r}", "a probability between 0 and 1", "Pass level=0.95"
            )
        freedom = self._inference.freedom
        return float(stdtrit(freedom, (1 + level) / 2)) if freedom > 0 else np.inf

    def _spread(self, values: np.ndarray) -> Any:
        return float(values[0]) if self._flat else values


DEFAULT_STEPS = 100_000  # of descent, when max_iter is None


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else X


def _per_output(values: np.ndarray, table: Table) -> Any:
    return float(values[0]) if table.flat else values


def mass_of(problem: LeastSquares) -> tuple[float, int]:
    """(Σω, rows with positive weight)."""
    if problem.weight is None:
        return float(problem.X.shape[0]), int(problem.X.shape[0])
    return float(problem.weight.sum()), int(np.count_nonzero(problem.weight))


def infer(fit: LinearFit, problem: LeastSquares, rows: int) -> Inference:
    """s² and the covariance of coefficients for unit noise: C ZᵀΩZ C with C = (ZᵀΩZ + αD)⁻¹.

    D is the identity but for a zero at the intercept, so that ZᵀΩZ = C⁻¹ − αD and the covariance
    is C − αCDC, with tr(I − αCD) effective parameters.
    """
    first = int(problem.fit_intercept)
    freedom, covariance = float(rows - fit.rank - first), fit.inverse
    alpha = float(problem.alpha[0])
    if covariance is not None and alpha > 0:
        C = covariance
        freedom = rows - (len(C) - alpha * float(np.trace(C[first:, first:])))
        covariance = C - alpha * (C[:, first:] @ C[first:, :])
    scale = fit.rss / freedom if freedom > 0 else np.full(fit.rss.shape, np.inf)
    return Inference(covariance, freedom, scale)
