"""The names of `wonderland.autodiff`: each loads on first use, is documented, and stays itself."""

import importlib
import inspect
import subprocess
import sys
from types import ModuleType

import pytest

import wonderland.autodiff as autodiff


@pytest.mark.parametrize("name", autodiff.__all__)
def test_every_public_name_loads_and_is_documented(name):
    value = getattr(autodiff, name)
    assert callable(value)
    assert inspect.getdoc(value), name
    assert name in dir(autodiff)


@pytest.mark.parametrize("name", autodiff.__all__)
def test_every_public_function_has_a_runnable_example(name):
    value = getattr(autodiff, name)
    if inspect.isfunction(value) and inspect.signature(value).parameters:
        assert ">>>" in inspect.getdoc(value), name


SAME_NAME = [name for name, home in autodiff._HOME.items() if name == home]


@pytest.mark.parametrize("name", SAME_NAME)
def test_a_function_is_not_hidden_by_the_module_of_its_name(name):
    """In a fresh process, whichever is imported first."""
    first = f"import wonderland.autodiff.{name}; import wonderland.autodiff as ad; f = ad.{name}"
    second = f"from wonderland.autodiff import {name} as f; import wonderland.autodiff.{name}"
    third = f"import wonderland.autodiff as ad; g = ad.{name}; assert g is f; assert callable(f)"
    code = f"{first}; assert callable(f); {second}; {third}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_same_names_exist_so_that_the_test_above_means_something():
    assert {"trace", "jacobian", "checkpoint", "implicit", "kinks", "stationary"} <= set(SAME_NAME)
    for name in SAME_NAME:
        module = importlib.import_module(f"wonderland.autodiff.{name}")
        assert callable(getattr(autodiff, name))
        assert isinstance(module, ModuleType)


def test_importing_the_package_alone_loads_no_jax():
    code = "import sys, wonderland.autodiff; sys.exit('jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'jacobiam'"):
        autodiff.jacobiam  # noqa: B018  # reading it is the test
