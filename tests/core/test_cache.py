"""The compile cache: on by default, never over a setting of the user's, off when told so."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import jax
from wonderland.core.cache import enable_compile_cache
{before}
print(enable_compile_cache())
print(jax.config.jax_compilation_cache_dir)
"""


def run(before="", **environment):
    clean = {k: v for k, v in os.environ.items() if "CACHE" not in k}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before)],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize("switch", ["off", "OFF", "0"])
def test_it_can_be_switched_off(tmp_path, switch):
    home = {"XDG_CACHE_HOME": str(tmp_path)}
    assert run(WONDERLAND_COMPILE_CACHE=switch, **home) == ["None", "None"]
    assert not list(tmp_path.iterdir())


def test_its_folder_is_in_the_users_cache(tmp_path):
    folder = str(tmp_path / "wonderland" / "xla")
    assert run(XDG_CACHE_HOME=str(tmp_path)) == [folder, folder]


def test_its_folder_can_be_named(tmp_path):
    folder = str(tmp_path / "here")
    assert run(WONDERLAND_COMPILE_CACHE=folder) == [folder, folder]


def test_a_setting_of_the_users_stays(tmp_path):
    mine = str(tmp_path / "mine")
    before = f"jax.config.update('jax_compilation_cache_dir', {mine!r})"
    assert run(before, XDG_CACHE_HOME=str(tmp_path)) == [mine, mine]
    assert run(JAX_COMPILATION_CACHE_DIR=mine, XDG_CACHE_HOME=str(tmp_path)) == [mine, mine]


def test_a_home_that_cannot_be_written_costs_only_compile_time(tmp_path):
    (tmp_path / "file").write_text("")
    assert run(WONDERLAND_COMPILE_CACHE=str(tmp_path / "file" / "below")) == ["None", "None"]
