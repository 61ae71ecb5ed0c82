"""What the commands `fit`, `predict` and `show` do."""

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import wonderland as wl
from wonderland.cli.files import columns_of, read, scan
from wonderland.cli.layout import coefficient_table, evidence_table, section
from wonderland.core.errors import InputError
from wonderland.core.evidence import plain

__all__ = ["fit_file", "predict_file", "show"]


def fit_file(options: argparse.Namespace) -> None:
    """Fit, test on the rows kept back, save, print."""
    model = _model(options)
    if options.stream or Path(options.file).is_dir():
        _fit_in_one_pass(model, options)
    else:
        _fit_in_memory(model, options)
    if options.out:
        wl.save(model, options.out)
    show(model, options.level, as_json=options.json)
    if options.out and not options.json:
        print(f"\nsaved to {options.out}")


def _fit_in_one_pass(model: Any, options: argparse.Namespace) -> None:
    """Rows are read in batches and never held together."""
    if options.test:
        raise InputError(
            f"--test {options.test:g} with rows read in one pass",
            "all rows to learn from",
            "Keep test rows in a file of their own",
        )
    names = None
    if options.features:
        kept = [options.target] if options.weight is None else [options.target, options.weight]
        names = [*_listed(options.features), *kept]
    model.fit(scan(options.file, names), options.target, options.weight)


def _fit_in_memory(model: Any, options: argparse.Namespace) -> None:
    table, weight = read(options.file), options.weight
    names = _features(table, options)
    target = columns_of(table, [options.target], options.file).column(0)
    weights = None if weight is None else columns_of(table, [weight], options.file).column(0)
    X, y = columns_of(table, names, options.file), np.asarray(target)
    w = None if weights is None else np.asarray(weights)
    test, learn = _split(len(y), options.test, options.seed)
    model.fit(X.take(learn), y[learn], None if w is None else w[learn])
    model.target_names_ = [options.target]
    if len(test):
        kept = None if w is None else w[test]
        wl.verify(model, X.take(test), y[test], kept, level=options.level)


def _model(options: argparse.Namespace) -> Any:
    """The estimator the options describe."""
    basis = wl.bases.Polynomial(options.degree) if options.degree != 1 else None
    common: dict[str, Any] = {"fit_intercept": not options.no_intercept, "basis": basis}
    if options.model == "ridge":
        return wl.Ridge(_alpha(options.alpha or "loo"), **common)
    if options.alpha is not None:
        raise InputError(
            f"--alpha {options.alpha} with --model linear",
            "a penalty only where there is one",
            "Add --model ridge",
        )
    return wl.LinearRegression(**common)


def _alpha(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text  # "loo", "gradient", or a name Ridge refuses with a sentence


def _features(table: Any, options: argparse.Namespace) -> list[str]:
    if options.features:
        return _listed(options.features)
    return [name for name in table.column_names if name not in (options.target, options.weight)]


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _split(count: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers to test on and to learn from."""
    if not 0 <= share < 1:
        raise InputError(f"--test {share:g}", "a share from 0 up to 1", "Pass --test 0.25")
    tested = round(share * count)
    if tested == 0:
        return np.arange(0), np.arange(count)
    order = np.random.default_rng(seed).permutation(count)
    return np.sort(order[:tested]), np.sort(order[tested:])


def predict_file(model_path: str, path: str, level: float | None) -> None:
    """Predictions as CSV on the output stream, with intervals where a level is given."""
    model = wl.load(model_path)
    names = list(getattr(model, "feature_names_in_", ()))
    table = read(path)
    X = columns_of(table, names, path) if names else table
    outputs = [str(name) for name in model.target_names_]
    columns, head = [_columns(model.predict(X))], list(outputs)
    if level is not None:
        columns += [_columns(end) for end in model.prediction_interval(X, level)]
        head += [f"{name} {end}" for end in ("from", "to") for name in outputs]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(np.hstack(columns).tolist())


def _columns(values: Any) -> np.ndarray:
    table = np.asarray(values)
    return table[:, None] if table.ndim == 1 else table


def show(model: Any, level: float, *, as_json: bool) -> None:
    """Coefficients and evidence, as tables or as JSON."""
    if not hasattr(model, "evidence_"):
        raise InputError(
            f"{type(model).__name__} in this file was saved before it was fitted",
            "a fitted model",
            "Fit it and save it again",
        )
    names = _names(model)
    if as_json:
        print(json.dumps(_document(model, names), indent=2, ensure_ascii=False))
        return
    print(
        section(
            f"{type(model).__name__} for {', '.join(map(str, model.target_names_))}",
            coefficient_table(model, names, level),
            evidence_table(model.evidence_.values()),
        )
    )


def _names(model: Any) -> list[str]:
    """Names of the coefficients, after the basis."""
    from wonderland.bases.basis import names_of

    given = [f"x{j}" for j in range(model.n_features_in_)]
    features = [str(name) for name in getattr(model, "feature_names_in_", given)]
    count = np.shape(model.coef_)[-1]
    return features if model.basis is None else names_of(model.basis, features, count)


def _document(model: Any, names: list[str]) -> dict[str, Any]:
    fields = ("coef_", "standard_errors_", "intercept_", "intercept_standard_error_")
    return {
        "model": type(model).__name__,
        "targets": plain(model.target_names_),
        "names": names,
        **{name.rstrip("_"): plain(getattr(model, name)) for name in fields},
        "evidence": model.evidence_.to_dict(),
    }
