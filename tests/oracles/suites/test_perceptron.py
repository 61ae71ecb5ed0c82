"""scikit-learn's tests of Perceptron, run on ours."""

import wonderland as wl
from tests.oracles.suites.substitute import chosen, load

CLASSES = {"Perceptron": wl.Perceptron}
EXCLUDED = {}

_suite = load("test_perceptron", CLASSES)
globals().update(chosen(_suite, CLASSES, EXCLUDED))
