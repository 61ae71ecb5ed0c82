"""Averaging over models: predictions of the posterior instead of those of one fit.

    p(y | x) = ∫ p(y | f_θ(x)) p(θ | S) dθ ≈ 1/k Σ_i p(y | f_{θ_i}(x))

    laplace    p(θ | S) ≈ N(θ̂, σ²H⁻¹), the integral in closed form or to rounding (`trust.laplace`)
    ensemble   k fits to samples drawn from S with replacement, or with k seeds (`trust.ensemble`)
    nuts       k draws of a Markov chain whose limit is p(θ | S) itself (`trust.sampling`)

The uncertainty comes in two parts that add up: what the parameters leave open (epistemic), and
what targets scatter where they are known (aleatoric). For numbers these are variances,

    Var[y|x] = Var_θ[f_θ(x)] + E_θ[σ²] ,

for classes entropies, the first part being the mutual information of y and θ:

    H[E_θ p_θ] = I(y; θ) + E_θ H[p_θ] .

Reference: MacKay (1992); Lakshminarayanan, Pritzel and Blundell (2017), Simple and scalable
predictive uncertainty estimation using deep ensembles; Depeweg et al. (2018), Decomposition of
uncertainty in Bayesian deep learning.
"""

from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from wonderland.core.errors import InputError, nearest
from wonderland.core.evidence import Evidence
from wonderland.core.random import seed_of
from wonderland.core.status import Status
from wonderland.metrics.intervals import check_fraction
from wonderland.shell.containers import wrap
from wonderland.shell.uncertainty import Uncertainty
from wonderland.trust.ensemble import fit_ensemble
from wonderland.trust.posterior_chains import fit_chains
from wonderland.trust.posterior_gaussian import fit_gaussian
from wonderland.trust.posterior_parts import Predictive
from wonderland.trust.sampling import Effort, warn_of
from wonderland.trust.wrapper import ClassifierWrapper, RegressorWrapper, Task, Wrapper, fit_on

__all__ = ["Posterior"]

METHODS = ("laplace", "ensemble", "nuts")
STRUCTURES = ("auto", "full", "diagonal")


def _wraps(kind: Any) -> Any:
    """Whether the estimator inside is of a kind; for `available_if`."""

    def check(self: Any) -> bool:
        return bool(kind(getattr(self, "estimator_", self.estimator)))

    return check


class Posterior(Wrapper):
    """Predictions averaged over the posterior of an estimator, with both parts of their doubt.

    Args:
        estimator: For "laplace" and "nuts" one of ours that states its log posterior
            (`LinearRegression`, `Ridge`, `LogisticRegression`, networks), or a pipeline that ends
            in one; for "ensemble" any with scikit-learn's manners.
        method: "laplace", "ensemble" or "nuts".
        members: Fits of an ensemble (16); draws that predictions of "nuts" average over (200).
        bootstrap: Whether members of an ensemble see samples drawn with replacement (of classes,
            within each class), or all samples and differ by their seeds alone.
        structure: Of H: "full", "diagonal", or "auto": full up to 3000 parameters.
        effort: How long to sample, an `Effort`; None for its defaults.
        random_state: Seed of draws.

    Attributes:
        estimator_: The estimator fitted to all samples; of an ensemble whose members do not start
            from such a fit, its first member.
        classes_: The labels (k,), for classifiers.
        predictive_: What predictions are computed from.
        evidence_: Claims: effective_parameters, rank, … (laplace); rhat, bulk_ess, tail_ess,
            divergences (nuts); members, together, out_of_bag_error (ensemble).

    >>> import numpy as np, wonderland as wl
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> y = ["no", "no", "yes", "no", "yes", "yes"]
    >>> one = wl.LogisticRegression().fit(X, y)
    >>> many = wl.Posterior(wl.LogisticRegression()).fit(X, y)
    >>> one.predict_proba([[20.0]])[0, 1].round(3), many.predict_proba([[20.0]])[0, 1].round(3)
    (np.float64(1.0), np.float64(0.915))
    """

    predictive_: Predictive

    def __init__(
        self,
        estimator: Any,
        *,
        method: str = "laplace",
        members: int | None = None,
        bootstrap: bool = True,
        structure: str = "auto",
        effort: Effort | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.members = members
        self.bootstrap = bootstrap
        self.structure = structure
        self.effort = effort
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """The tags of what is wrapped: a classifier or a regressor of one target."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator) if hasattr(self.estimator, "__sklearn_tags__") else None
        if inner is not None:
            tags.estimator_type = inner.estimator_type
            tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
            tags.target_tags.required = inner.target_tags.required
        return tags

    def _check_parameters(self) -> None:
        for name, known in (("method", METHODS), ("structure", STRUCTURES)):
            value = getattr(self, name)
            if value not in known:
                raise InputError(
                    f"{name} is {value!r}", f"one of {', '.join(known)}", nearest(value, known)
                )
        whole = isinstance(self.members, int | np.integer) and not isinstance(self.members, bool)
        if self.members is not None and not (whole and self.members >= 2):
            raise InputError(
                f"members is {self.members!r}", "a whole number ≥ 2, or None", "Pass members=16"
            )
        if self.effort is not None and not isinstance(self.effort, Effort):
            raise InputError(
                f"effort is {self.effort!r}",
                "an Effort, or None",
                "Pass wl.trust.Effort(draws=500)",
            )
        if not (is_classifier(self.estimator) or is_regressor(self.estimator)):
            raise InputError(
                f"estimator is {self.estimator!r}",
                "a classifier or a regressor",
                "Pass for instance wl.LogisticRegression()",
            )

    def _read_target(self, y: np.ndarray) -> tuple[np.ndarray, Any, Any]:
        kind = ClassifierWrapper if is_classifier(self.estimator) else RegressorWrapper
        return kind._read_target(self, y)

    def _fit(self, task: Task) -> dict[str, Any]:
        seed = seed_of(self.random_state)
        predictive: Predictive
        if self.method == "laplace":
            estimator = fit_on(self.estimator, task)
            predictive, claims = fit_gaussian(estimator, task, self.structure)
        elif self.method == "nuts":
            effort = Effort() if self.effort is None else self.effort
            estimator = fit_on(self.estimator, task)
            predictive, claims = fit_chains(estimator, task, effort, self.members or 200, seed)
        else:
            found = fit_ensemble(self, task, self.members or 16, seed)
            estimator, predictive, claims = found
        return {
            "estimator_": estimator,
            "predictive_": predictive,
            "evidence_": Evidence(claims),
            "status_": Status.SOLVED,
        }

    def _report_end(self) -> Any:
        """Chains that have not mixed are told once, with what to do."""
        if self.method == "nuts":
            warn_of(self.evidence_, stacklevel=5)
        return super()._report_end()

    def predict(self, X: Any, return_std: bool = False) -> Any:  # noqa: FBT001, FBT002
        """The likeliest label, or the mean of the predictive distribution (n,).

        Args:
            X: (n, …).
            return_std: For regressors, whether the deviation of a new target comes along.
        """
        inner = self._predictive
        if is_classifier(self.estimator):
            average = inner.classes(self.estimator_, X).average
            return self._named(self.classes_[average.argmax(axis=1)], X)
        numbers = inner.numbers(self.estimator_, X)
        if not return_std:
            return self._named(numbers.mean, X)
        return self._named(numbers.mean, X), self._named(np.sqrt(numbers.total), X)

    @available_if(_wraps(is_classifier))
    def predict_proba(self, X: Any) -> Any:
        """E_θ p(class | x) (n, k), columns in the order of `classes_`."""
        average = self._predictive.classes(self.estimator_, X).average
        return self._named(average, X)

    def uncertainty(self, X: Any) -> Uncertainty:
        """Both parts of the doubt at each row: variances, or entropies of classes in nats."""
        if is_classifier(self.estimator):
            found = self._predictive.classes(self.estimator_, X)
            total, aleatoric = found.entropy, np.minimum(found.expected_entropy, found.entropy)
            epistemic = total - aleatoric
        else:
            numbers = self._predictive.numbers(self.estimator_, X)
            total, epistemic, aleatoric = numbers.total, numbers.epistemic, numbers.aleatoric
        return Uncertainty(*(self._named(part, X) for part in (total, epistemic, aleatoric)))

    @available_if(_wraps(is_regressor))
    def prediction_interval(self, X: Any, level: float = 0.95) -> tuple[Any, Any]:
        """Central intervals that hold a new target with probability `level`: (low, high).

        Quantiles of the predictive distribution: Student's t about the mean for "laplace", of the
        mixture of all members otherwise.
        """
        check_fraction(level)
        low, high = self._predictive.interval(self.estimator_, X, float(level))
        return self._named(low, X), self._named(high, X)

    def predict_members(self, X: Any) -> np.ndarray:
        """What each member says: probabilities (m, n, k) or numbers (m, n); for "laplace" draws."""
        return self._predictive.members(self.estimator_, X, self.members or 16)

    @property
    def _predictive(self) -> Predictive:
        """What averages; scikit-learn's NotFittedError before `fit`."""
        self._require_fit()
        return self.predictive_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy, or R² for numbers, as scikit-learn's estimators score."""
        said = np.asarray(self.predict(X))
        measure = accuracy_score if is_classifier(self.estimator) else r2_score
        return float(measure(np.asarray(y), said, sample_weight=sample_weight))

    def _named(self, values: np.ndarray, X: Any) -> Any:
        container = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        if values.ndim == 1:
            return wrap(values, container, X, self.target_names_)
        return wrap(values, container, X, [str(label) for label in self.classes_])
