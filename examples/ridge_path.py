"""The whole path of ridge penalties from one factorisation, and the penalty it suggests.

Saves `ridge_path.png` into the folder given as argument (default: here) when matplotlib is there.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes

import wonderland as wl
from wonderland.report import plot_descent_rate, plot_intervals, plot_ridge_path


def main(folder: str = ".") -> None:
    data = load_diabetes()
    X = data.data / data.data.std(axis=0)
    y = data.target

    path = wl.ridge_path(X, y, np.logspace(-2, 4, 25))
    print("    alpha  leave-one-out error  d error / d alpha")
    for alpha, error, slope in list(zip(path.alphas, path.error, path.slope, strict=True))[::4]:
        print(f"{alpha:9.3g}  {error:19.4f}  {slope:17.4g}")

    # The best of the path, and the very minimum, found at the zero of the exact derivative.
    best = wl.Ridge("loo", alphas=path.alphas).fit(X, y)
    tuned = wl.Ridge("gradient", alphas=path.alphas).fit(X, y)
    print(f"\nbest of the path: alpha = {best.alpha_:.4g}; at zero slope: {tuned.alpha_:.8g}")
    print(tuned.evidence_["leave_one_out_slope"])
    assert tuned.evidence_["leave_one_out_error"].value <= path.error.min() * (1 + 1e-9)

    if importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "wonderland[plot]"')
        return
    pictures = {
        "ridge_path.png": plot_ridge_path(path, data.feature_names),
        "intervals.png": plot_intervals(wl.LinearRegression().fit(X, y), X, data.feature_names),
        "descent_rate.png": plot_descent_rate(X, y, alpha=1.0),
    }
    for name, figure in pictures.items():
        figure.savefig(Path(folder) / name, dpi=120)
        print("saved", Path(folder) / name)


if __name__ == "__main__":
    main(*sys.argv[1:])
