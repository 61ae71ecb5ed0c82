"""Tables as they are: `MLPClassifier(architecture="table")` beside scikit-learn's defaults.

    python -m benchmarks.networks.tabular [--sets adult,dna] [--splits 2] [--processes 2]

A quarter of the rows is test data, drawn anew for each split; nobody is tuned. Peers:
scikit-learn's HistGradientBoostingClassifier and MLPClassifier at their defaults (text one-hot
encoded for the latter). Printed: mean test accuracy and log loss, and the mean ranks over the sets.
"""

import argparse
import gzip
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.networks.uci import DATA, results

FEW = 12_000  # rows used of a larger table


def _npz(path: str) -> Callable[[Path], tuple[Any, np.ndarray]]:
    def read(folder: Path) -> tuple[Any, np.ndarray]:
        table = np.load(folder / path)
        if "x" in table:
            return table["x"].astype(float), table["y"]
        X = np.concatenate([table["x_train"], table["x_test"]]).astype(float)
        return X, np.concatenate([table["y_train"], table["y_test"]])

    return read


def _svm(path: str) -> Callable[[Path], tuple[Any, np.ndarray]]:
    def read(folder: Path) -> tuple[Any, np.ndarray]:
        from sklearn.datasets import load_svmlight_file

        X, y = load_svmlight_file(str(folder / "libsvm" / path))
        return X.toarray(), y

    return read


def _wine(colour: str) -> Callable[[Path], tuple[Any, np.ndarray]]:
    def read(folder: Path) -> tuple[Any, np.ndarray]:
        with gzip.open(folder / "wine_quality" / f"winequality-{colour}.csv.gz", "rt") as file:
            head = file.readline()
            table = np.loadtxt(file, delimiter=";" if ";" in head else ",")
        return table[:, :-1], np.clip(table[:, -1], 4, 8)

    return read


def _adult(folder: Path) -> tuple[Any, np.ndarray]:
    import pandas as pd

    table = pd.read_csv(folder / "adult" / "adult.data.csv.gz", skipinitialspace=True)
    table = table.replace("?", np.nan)
    X = table.iloc[:, :-1]
    text = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    return X.astype(dict.fromkeys(text, "category")), table.iloc[:, -1].to_numpy(str)


def _own(name: str) -> Callable[[Path], tuple[Any, np.ndarray]]:
    def read(folder: Path) -> tuple[Any, np.ndarray]:
        from sklearn import datasets

        return getattr(datasets, f"load_{name}")(return_X_y=True)

    return read


SETS: dict[str, Callable[[Path], tuple[Any, np.ndarray]]] = {
    "covtype": _npz("covtype_15k/covtype_15k.npz"),
    "adult": _adult,
    "higgs": _npz("higgs_subsets/higgs_11k.npz"),
    "svmguide1": _npz("libsvm/svmguide1.npz"),
    "wine white": _wine("white"),
    "spambase": _npz("spambase/spambase.npz"),
    "dna": _npz("libsvm/dna.npz"),
    "digits": _own("digits"),
    "wine red": _wine("red"),
    "banknote": _npz("banknote/banknote.npz"),
    "fourclass": _svm("fourclass_scale.libsvm.gz"),
    "breast cancer": _own("breast_cancer"),
    "heart": _svm("heart_scale.libsvm.gz"),
    "wine": _own("wine"),
}


def contenders(seed: int) -> dict[str, Callable[[], Any]]:
    """Who takes part, unfitted."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    import wonderland as wl

    coded = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include="category")),
        remainder=SimpleImputer(),
    )
    return {
        "wonderland": lambda: wl.MLPClassifier(architecture="table", random_state=seed),
        "boosting": lambda: HistGradientBoostingClassifier(random_state=seed),
        "mlp": lambda: MLPClassifier(random_state=seed),
        "mlp, coded": lambda: make_pipeline(coded, MLPClassifier(random_state=seed)),
    }


def judge(job: tuple[str, str, int]) -> tuple[str, int, dict[str, tuple[float, float]]]:
    """(set, split, contender → (accuracy, log loss)) of one split."""
    folder, name, split = job
    from sklearn.metrics import log_loss
    from sklearn.model_selection import train_test_split

    warnings.simplefilter("ignore")
    X, y = SETS[name](Path(folder))
    y = np.unique(y, return_inverse=True)[1]
    rows = np.random.default_rng(split).permutation(len(y))[:FEW]
    train, test = train_test_split(rows, test_size=0.25, random_state=split, stratify=y[rows])
    take = (lambda at: X.iloc[at]) if hasattr(X, "iloc") else (lambda at: X[at])
    found = {}
    skipped = "mlp" if hasattr(X, "iloc") else "mlp, coded"
    for who, make in contenders(split).items():
        if who == skipped:
            continue
        fitted = make().fit(take(train), y[train])
        p = fitted.predict_proba(take(test))
        score = float(np.mean(p.argmax(axis=1) == y[test]))
        found[who.split(",")[0]] = score, float(log_loss(y[test], p, labels=np.unique(y)))
    return name, split, found


def main(arguments: Sequence[str]) -> None:
    """Run the sets and print a table."""
    parser = argparse.ArgumentParser(prog="benchmarks networks tabular", description=__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--data", default=str(DATA))
    chosen = parser.parse_args(arguments)
    names = chosen.sets.split(",")
    jobs = [(chosen.data, name, k) for name in names for k in range(chosen.splits)]
    who = ["wonderland", "boosting", "mlp"]
    print(f"{'set':14}" + "".join(f"{name:>22}" for name in who))
    scores: dict[str, list[Any]] = {name: [] for name in names}
    for name, _, found in results(jobs, chosen.processes, judge):
        scores[name].append([found[one] for one in who])
        if len(scores[name]) == chosen.splits:
            mean = np.mean(scores[name], axis=0)
            print(f"{name:14}" + "".join(f"{a:13.4f} {b:8.4f}" for a, b in mean), flush=True)
    done = [np.mean(found, axis=0) for found in scores.values() if found]
    for place, what in enumerate(("accuracy", "log loss")):
        table = np.array([mean[:, place] for mean in done]) * (-1 if place == 0 else 1)
        print(
            f"mean rank by {what} over {len(done)} sets:", dict(zip(who, ranks(table), strict=True))
        )


def ranks(table: np.ndarray) -> list[float]:
    """The mean rank of each column, 1 for the smallest; ties share."""
    from scipy.stats import rankdata

    return [round(float(r), 3) for r in np.mean([rankdata(row) for row in table], axis=0)]


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
