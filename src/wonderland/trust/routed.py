"""Where the further arguments of a wrapper's `fit` go: to the estimator inside, to the splitter."""

import warnings
from typing import Any

from sklearn import get_config
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import _check_method_params, has_fit_parameter

__all__ = ["is_splitter", "routed", "weight_name"]


def routed(
    wrapper: Any, X: Any, weight: Any, params: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of the wrapped estimator's `fit` and of the splitter's `split`.

    With scikit-learn's metadata routing enabled, as the requests of both say. Without it, weights
    go to the estimator where it takes them, everything else of `params` too, and `groups` to the
    splitter.
    """
    if get_config()["enable_metadata_routing"]:
        given = process_routing(wrapper, "fit", sample_weight=weight, **params)
        return _check_method_params(X, given["estimator"]["fit"]), dict(
            given.get("splitter", {"split": {}})["split"]
        )
    fit: dict[str, Any] = dict(params)
    split: dict[str, Any] = {}
    if is_splitter(getattr(wrapper, "cv", None)) and "groups" in fit:
        split["groups"] = fit.pop("groups")
    if weight is not None:
        name = weight_name(wrapper.estimator)
        if name is not None:
            fit[name] = weight
        elif getattr(wrapper, "cv", None) != "prefit":
            _warn_unweighted(wrapper)
    return _check_method_params(X, fit), split


def is_splitter(cv: Any) -> bool:
    """Whether `cv` is an object that splits, and not a number, a word or a list of splits."""
    return hasattr(cv, "split") and not isinstance(cv, str)


def weight_name(estimator: Any) -> str | None:
    """What `fit` calls its weights: a pipeline hands them to its last step; None: takes none."""
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    steps = getattr(estimator, "steps", None)
    if steps:
        name, last = steps[-1]
        inner = weight_name(last)
        return None if inner is None else f"{name}__{inner}"
    return None


def _warn_unweighted(wrapper: Any) -> None:
    inner = type(wrapper.estimator).__name__
    warnings.warn(
        f"{inner}.fit takes no sample_weight: {inner} learns from the samples as if they all "
        f"counted the same, and only {type(wrapper).__name__} weighs them. Weigh them in both, "
        "with an estimator that takes weights, or in neither.",
        UserWarning,
        stacklevel=6,
    )
