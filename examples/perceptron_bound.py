"""Mistakes of the perceptron beside their bound C²/γ², and what happens where no plane exists."""

import numpy as np

import wonderland as wl


def main() -> None:
    print("    margin  mistakes    bound")
    for margin in (0.5, 0.2, 0.1, 0.05, 0.02):
        sample = wl.datasets.make_separable(400, 5, margin=margin, seed=1)
        fitted = wl.Perceptron(tol=None).fit(sample.X, sample.y)
        mistakes = fitted.evidence_["mistakes"]
        print(f"{margin:10.2f}  {mistakes.value:8d}  {mistakes.bound:7.0f}")
        assert mistakes.holds
        assert fitted.evidence_["separable"].value is True

    # Exclusive or: the two hulls meet, and in a fixed order the run comes back to where it was.
    corners = wl.datasets.load_xor()
    fitted = wl.Perceptron(shuffle=False).fit(corners.X, corners.y)
    (verdict,) = fitted.separation_
    print("\nexclusive or, separable:", fitted.evidence_["separable"].value)
    for sign in (-1, 1):
        own = corners.y == sign
        print(f"  class {sign:+d}: mean {verdict.weights[own] @ corners.X[own]} of its corners")
    first, length = fitted.evidence_["cycle"].value
    print(f"  the state after pass {first} came back after {length} more")
    print(" ", fitted.status_.sentence)

    # Three classes on a line: each against the rest fails in the middle, pairs do not.
    X = np.repeat([[0.0], [1.0], [2.0]], 30, axis=0) + np.linspace(-0.2, 0.2, 90)[:, None] % 0.2
    y = np.repeat(["low", "middle", "high"], 30)
    for way in ("ovr", "ovo"):
        fitted = wl.Perceptron(multi_class=way, tol=None, max_iter=2000)
        if way == "ovr":
            fitted.set_params(tol=1e-3)
        fitted.fit(X, y)
        print(f"{way}: separable {fitted.evidence_['separable'].value}, score {fitted.score(X, y)}")


if __name__ == "__main__":
    main()
