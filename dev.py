"""Everything a checkout needs, from plain Python and pip: environment, demo, tests, checks.

    python dev.py demo     fit models on data that ships with scikit-learn, print their evidence
    python dev.py test     the whole test suite
    python dev.py quick    the fast tests only, for the inner loop
    python dev.py check    lint, types, and every example in README, docs and docstrings

The first call makes `.venv` beside this file and installs the project into it; later calls
reuse it until `pyproject.toml` changes. Further arguments go to the tool behind the command.
"""

from __future__ import annotations  # an old Python shall reach the sentence below

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "wonderland.stamp"

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs")
PYTEST = ["-m", "pytest", "-n", "2", "--dist", "worksteal"]
COMMANDS: dict[str, list[list[str]]] = {
    "demo": [["-m", "wonderland.cli.main", "demo"]],
    "test": [PYTEST],
    "quick": [[*PYTEST, "-m", "not slow"]],
    "check": [
        ["-m", "ruff", "check"],
        ["-m", "ruff", "format", "--check"],
        ["-m", "mypy"],
        [*PYTEST, "--doctest-modules", "src", "-p", "no:cacheprovider"],
        [*PYTEST, "--doctest-glob=*.md", *DOCUMENTS, "-p", "no:cacheprovider"],
    ],
}


def main(arguments: Sequence[str]) -> int:
    """Run one command of the table above; stop at its first failing step."""
    if not arguments or arguments[0] not in COMMANDS:
        print(__doc__)
        return 0 if arguments and arguments[0] in {"-h", "--help"} else 2
    trouble = prepare()
    if trouble:
        print(trouble, file=sys.stderr)
        return 1
    for step in COMMANDS[arguments[0]]:
        done = subprocess.run([PYTHON, *step, *arguments[1:]], cwd=ROOT, check=False)
        if done.returncode:
            return done.returncode
    return 0


def prepare() -> str | None:
    """Create the environment, or renew it when `pyproject.toml` or Python has changed.

    Returns:
        None when it is ready, else a sentence that says what to do.
    """
    project = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    wanted = f"{sys.version} {ROOT} {project}"
    if STAMP.exists() and STAMP.read_text(encoding="utf-8") == wanted:
        return None
    print(f"installing wonderland into {VENV.name}/ (once, a minute or two) ...", flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    pip = _make_environment()
    if pip is None:
        return (
            "This Python has neither ensurepip nor pip, so nothing can be installed. Expected one "
            "of them. Install them first (on Debian and Ubuntu: apt install python3-venv)."
        )
    install = ["install", "--quiet", "--disable-pip-version-check", "-e", ".[dev]"]
    done = subprocess.run([*pip, *install], cwd=ROOT, check=False)
    if done.returncode:
        return (
            "pip could not install the project (its own words are above). Expected access to a "
            "package index. Check the network or pip's index settings and run this again."
        )
    STAMP.write_text(wanted, encoding="utf-8")
    return None


def _make_environment() -> list[str] | None:
    """Make `.venv`; the pip command that installs into it, None when there is no pip at all."""
    if importlib.util.find_spec("ensurepip") is not None:
        try:
            venv.create(VENV, with_pip=True)
        except (subprocess.CalledProcessError, OSError):
            pass  # some distributions ship ensurepip without the wheels it unpacks
        else:
            return [str(PYTHON), "-m", "pip"]
    if importlib.util.find_spec("pip") is None:
        return None
    # A pip outside can install into an environment that has none of its own.
    venv.create(VENV, with_pip=False, clear=True)
    return [sys.executable, "-m", "pip", "--python", str(PYTHON)]


if __name__ == "__main__":
    if sys.version_info < OLDEST:
        sys.exit(
            f"This is Python {sys.version.split()[0]}. Expected {OLDEST[0]}.{OLDEST[1]} or newer. "
            "Call dev.py with a newer python3."
        )
    sys.exit(main(sys.argv[1:]))
