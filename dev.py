"""Everything a checkout needs, from plain Python and pip: environment, demo, tests, checks.

    python dev.py demo     fit models on data that ships with scikit-learn, print their evidence
    python dev.py test     the whole test suite
    python dev.py quick    the fast tests only, for the inner loop
    python dev.py check    lint, types, and every example in README, docs and docstrings

The first call makes `.venv` beside this file and installs the project into it; later calls
reuse it until `pyproject.toml` changes. Further arguments go to the tool behind the command.
"""

import hashlib
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs")
COMMANDS: dict[str, list[list[str]]] = {
    "demo": [["-m", "wonderland.cli.main", "demo"]],
    "test": [["-m", "pytest", "-n", "2"]],
    "quick": [["-m", "pytest", "-n", "2", "-m", "not slow"]],
    "check": [
        ["-m", "ruff", "check"],
        ["-m", "ruff", "format", "--check"],
        ["-m", "mypy"],
        ["-m", "pytest", "--doctest-modules", "src", "-n", "2", "-p", "no:cacheprovider"],
        ["-m", "pytest", "--doctest-glob=*.md", *DOCUMENTS, "-p", "no:cacheprovider"],
    ],
}


def prepare() -> None:
    """Create the environment, or refresh it when `pyproject.toml` has changed since."""
    stamp = VENV / "wonderland.stamp"
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"installing wonderland into {VENV.name}/ (once, about a minute) ...", flush=True)
    venv.create(VENV, with_pip=True)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", ".[dev]"]
    subprocess.run([PYTHON, *install], cwd=ROOT, check=True)
    stamp.write_text(wanted)


def main(arguments: Sequence[str]) -> int:
    """Run one command of the table above; stop at its first failing step."""
    if not arguments or arguments[0] not in COMMANDS:
        print(__doc__)
        return 0 if arguments and arguments[0] in {"-h", "--help"} else 2
    prepare()
    for step in COMMANDS[arguments[0]]:
        done = subprocess.run([PYTHON, *step, *arguments[1:]], cwd=ROOT, check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
