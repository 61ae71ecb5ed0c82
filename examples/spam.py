"""Spam: from messages to bags of words to linear models, each with its evidence.

Reads SMSSpamCollection.tsv.gz from the folder given as argument, or from shared/data/sms_spam
beside the project; where neither is there, six mails of a textbook take its place.
"""

import sys
import time
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline

import wonderland as wl

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data" / "sms_spam"
FILE = "SMSSpamCollection.tsv.gz"
MODELS = ("Perceptron", "LogisticRegression", "LinearSVC")


def available() -> list[type]:
    """The linear classifiers of this version."""
    return [getattr(wl, name) for name in MODELS if name in wl.__all__]


def made(kind: type) -> object:
    """An unfitted classifier; the averaged perceptron forgets less of what it saw."""
    return kind(variant="averaged") if kind.__name__ == "Perceptron" else kind()


def telling(words: np.ndarray, coef: np.ndarray, count: int = 6) -> str:
    order = np.argsort(coef)
    return f"spam: {' '.join(words[order[::-1][:count]])} · not: {' '.join(words[order[:count]])}"


def report(name: str, fitted: object) -> None:
    for claim in ("separable", "duality_gap", "gradient_norm", "mistakes"):
        if claim in fitted.evidence_:
            print(f"    {str(fitted.evidence_[claim])[:110]}")


def messages(path: Path) -> None:
    sample = wl.datasets.load_sms(path)
    test = np.arange(len(sample.y)) % 4 == 3
    texts, new = sample.X[~test], sample.X[test]
    print(
        f"{sample.name}: {np.mean(sample.y == 'spam'):.1%} spam; every fourth is kept for testing"
    )
    for kind in available():
        start = time.perf_counter()
        pipeline = make_pipeline(wl.BagOfWords(tfidf=True, min_df=2), made(kind))
        pipeline.fit(texts, sample.y[~test])
        took = time.perf_counter() - start
        found, truth = pipeline.predict(new), sample.y[test]
        caught = np.mean(found[truth == "spam"] == "spam")
        wrong = np.sum(found[truth == "ham"] == "spam")
        score = np.mean(found == truth)
        print(f"\n{kind.__name__}: {score:.2%} right, {caught:.1%} of spam caught, ", end="")
        print(f"{wrong} of {np.sum(truth == 'ham')} others lost; fitted in {took:.1f} s")
        report(kind.__name__, pipeline[-1])
        print("   ", telling(pipeline[0].get_feature_names_out(), np.ravel(pipeline[-1].coef_)))
        assert score > 0.95


def mails() -> None:
    sample = wl.datasets.load_email_filtering()
    print(f"{FILE} is not here: {sample.name} take its place")
    for kind in available():
        fitted = made(kind).fit(sample.X, sample.y)
        print(
            f"\n{kind.__name__}: {fitted.score(sample.X, sample.y):.0%} of the six right; the new",
            end="",
        )
        print(" mail is", "spam" if fitted.predict([sample.truth["new"]])[0] > 0 else "not spam")
        report(kind.__name__, fitted)
        print("   ", telling(np.array(sample.features), np.ravel(fitted.coef_), count=2))


def main(folder: str | None = None) -> None:
    path = (Path(folder) if folder else BESIDE) / FILE
    messages(path) if path.exists() else mails()


if __name__ == "__main__":
    main(*sys.argv[1:])
