"""scikit-learn's own test files, run with this library's estimators in their place.

The module is executed while `sklearn.linear_model` holds our classes, so that its imports, its
parametrisations and its fixtures all take ours. Kept are the tests whose text names a substituted
class; tests of other estimators and of private helpers would only try scikit-learn itself.
"""

import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
import sklearn.linear_model

# Its table of what to try on which class must hold scikit-learn's classes: a test file that
# imported it while ours are in place would have it try scikit-learn's settings on ours.
import sklearn.utils.estimator_checks


@contextmanager
def substituted(classes: Mapping[str, type], package: ModuleType = sklearn.linear_model):
    """A package with some names replaced."""
    before = {name: getattr(package, name) for name in classes}
    try:
        vars(package).update(classes)
        yield
    finally:
        vars(package).update(before)


def load(
    file: str, classes: Mapping[str, type], package: ModuleType = sklearn.linear_model
) -> ModuleType:
    """Execute a test file of a package with `classes` in place."""
    folder = Path(package.__file__).parent / "tests"
    spec = importlib.util.spec_from_file_location(f"substituted_{file}", folder / f"{file}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with substituted(classes, package):
        spec.loader.exec_module(module)
    return module


def chosen(
    module: ModuleType, classes: Mapping[str, type], excluded: Mapping[str, str]
) -> dict[str, Callable]:
    """The tests that name a class; those excluded are skipped with their reason."""
    word = re.compile(rf"\b({'|'.join(classes)})\b")
    found = {
        name: function
        for name, function in vars(module).items()
        if name.startswith("test_") and word.search(inspect.getsource(function))
    }
    unknown = set(excluded) - set(found)
    if unknown:
        raise LookupError(f"excluded tests that do not exist: {sorted(unknown)}")
    for function in found.values():
        function.pytestmark = [_listed(mark) for mark in getattr(function, "pytestmark", [])]
    for name, reason in excluded.items():
        found[name] = pytest.mark.skip(reason=reason)(found[name])
    return found


def _listed(mark: pytest.Mark) -> pytest.Mark:
    """The same mark with generators of parameters as lists, as pytest now asks."""
    arguments = tuple(list(a) if inspect.isgenerator(a) else a for a in mark.args)
    return pytest.Mark(mark.name, arguments, mark.kwargs, _ispytest=True)
