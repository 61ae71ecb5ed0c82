"""The floors of the house, read from the imports of every module and enforced.

    topics    linear  svm  trust  neural  language  generate  unsupervised     cli  report  testing
    machines  shell  solve  training  autodiff
    parts     losses  penalties  kernels  nn  bases  metrics  datasets
    core

Imports go downward only; topics do not import one another.
"""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import wonderland as wl

SOURCE = Path(wl.__file__).resolve().parent
FLOOR = {
    room: floor
    for floor, rooms in enumerate(
        [
            "core",
            "losses penalties kernels nn bases metrics datasets",
            "shell solve training autodiff",
            "linear svm trust neural language generate unsupervised",
            "report cli testing",
        ]
    )
    for room in rooms.split()
}
TOPICS = {room for room, floor in FLOOR.items() if floor == 3}
# Who alone may import a package from outside.
ONLY = {
    "sklearn": {"shell", "trust", "testing"},
    "optax": {"training"},
    "blackjax": {"trust"},
    "pandas": {"shell"},
    "polars": {"shell"},
    "pyarrow": {"shell"},
    "matplotlib": {"report", "autodiff"},
    "sympy": {"autodiff"},
}
NEVER = {"pytest", "hypothesis", "torch", "beartype"}
LINES = 500


class Import(NamedTuple):
    """One import statement: where, of what, and whether it runs when its module is imported."""

    file: Path
    line: int
    module: str
    eager: bool

    @property
    def room(self) -> str:
        """The folder (or file) under wonderland it stands in."""
        parts = self.file.relative_to(SOURCE).parts
        return parts[0].removesuffix(".py")

    @property
    def target(self) -> str:
        """The room it imports from; empty for other packages."""
        parts = self.module.split(".")
        return parts[1] if parts[0] == "wonderland" and len(parts) > 1 else ""

    def __str__(self) -> str:
        return f"{self.file.relative_to(SOURCE)}:{self.line} imports {self.module}"


def _statements(file: Path):
    """Every import of a file as (line, dotted module, eager)."""
    tree = ast.parse(file.read_text())
    for node, eager in _walk(tree, eager=True):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, eager) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                here = ("wonderland", *file.relative_to(SOURCE).parts)[: -node.level]
                base = ".".join([*here, base]).rstrip(".")
            if base == "wonderland":
                yield from ((node.lineno, f"wonderland.{a.name}", eager) for a in node.names)
            else:
                yield node.lineno, base, eager


def _walk(node, *, eager: bool):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue  # read by type checkers only
        yield child, eager
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _walk(child, eager=eager and not inside)


FILES = sorted(SOURCE.rglob("*.py"))
IMPORTS = [Import(file, *found) for file in FILES for found in _statements(file)]


def _rooms():
    return {file.relative_to(SOURCE).parts[0] for file in FILES if file.parent != SOURCE}


def test_every_room_has_a_floor():
    assert _rooms() <= set(FLOOR), "a new folder needs its place among the floors"


def test_imports_go_downward():
    upward = [
        str(found)
        for found in IMPORTS
        if found.target in FLOOR
        and found.room in FLOOR
        and found.target != found.room
        and FLOOR[found.target] > FLOOR[found.room]
    ]
    assert not upward, "\n".join(upward)


def test_topics_do_not_import_one_another():
    across = [
        str(found)
        for found in IMPORTS
        if {found.room, found.target} <= TOPICS and found.room != found.target
    ]
    assert not across, "\n".join(across)


def test_arguments_not_imports_bring_estimators_to_trust():
    found = [str(i) for i in IMPORTS if i.room == "trust" and i.target in TOPICS - {"trust"}]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("package", sorted(ONLY))
def test_outside_packages_have_one_door(package):
    wrong = [
        str(found)
        for found in IMPORTS
        if found.module.partition(".")[0] == package and found.room not in ONLY[package]
    ]
    assert not wrong, "\n".join(wrong)


def test_the_library_needs_no_test_tools():
    wrong = [str(found) for found in IMPORTS if found.module.partition(".")[0] in NEVER]
    assert not wrong, "\n".join(wrong)


def test_nobody_reaches_into_private_parts_of_others():
    wrong = [
        str(found)
        for found in IMPORTS
        if found.module.startswith(("jax._src", "numpy._", "scipy._", "equinox._", "sklearn._"))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_file_is_longer_than_a_person_reads():
    long = {
        str(file): count for file in FILES if (count := len(file.read_text().splitlines())) > LINES
    }
    assert not long


def test_every_file_says_what_it_is():
    silent = [str(file) for file in FILES if not ast.get_docstring(ast.parse(file.read_text()))]
    assert not silent


def _functions():
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield file, node


def test_functions_fit_a_screen():
    sizes = {}
    for file, node in _functions():
        body = node.body[1:] if ast.get_docstring(node) else node.body
        lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
        sizes[f"{file.relative_to(SOURCE)}:{node.name}"] = lines
    counts = sorted(sizes.values())
    assert counts[len(counts) // 2] < 10, "half of the functions are shorter than ten lines"
    assert not {name: lines for name, lines in sizes.items() if lines > 60}


def test_no_assert_guards_an_input():
    """`python -O` removes asserts: what must hold of a user's input is raised.

    Interpreters of programs may state to the type checker what their own rules guarantee.
    """
    found = [
        f"{file}:{node.lineno}"
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Assert) and "autodiff/sparsity" not in file.as_posix()
    ]
    assert not found


def test_public_names_are_documented_and_exist():
    modules = [
        ".".join(("wonderland", *file.relative_to(SOURCE).with_suffix("").parts)) for file in FILES
    ]
    silent = []
    for name in modules:
        module = importlib.import_module(name.removesuffix(".__init__"))
        for public in getattr(module, "__all__", ()):
            value = getattr(module, public)
            if (inspect.isclass(value) or inspect.isfunction(value)) and not inspect.getdoc(value):
                silent.append(f"{name}.{public}")
    assert not silent


def test_every_name_of_the_front_page_exists():
    for name in wl.__all__:
        assert getattr(wl, name) is not None
    assert set(wl.__all__) <= set(dir(wl))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        wl.nothing  # noqa: B018  # reading it is the test


def test_type_checkers_see_every_name_of_the_front_page():
    branch = next(
        node
        for node in ast.parse((SOURCE / "__init__.py").read_text()).body
        if isinstance(node, ast.If)
    )
    seen = {alias.asname for node in branch.body for alias in node.names}
    assert seen == set(wl.__all__) - {"__version__"}


def fresh(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_importing_wonderland_imports_nothing_heavy():
    heavy = "{'jax', 'sklearn', 'scipy', 'pandas', 'matplotlib', 'pyarrow', 'equinox', 'numpy'}"
    assert fresh(f"import sys, wonderland; print(sorted({heavy} & set(sys.modules)))") == "[]"


def test_a_fit_imports_no_optional_package():
    # pandas and pyarrow are not asked about: scikit-learn imports them where they are installed.
    program = (
        "import sys, wonderland as wl\n"
        "wl.LinearRegression().fit([[0.0], [1.0], [3.0]], [1.0, 2.0, 3.5])\n"
        "print(sorted({'matplotlib', 'polars', 'sympy'} & set(sys.modules)))"
    )
    assert fresh(program) == "[]"


def test_importing_changes_no_global_setting():
    program = (
        "import jax; before = dict(jax.config.values)\n"
        "import wonderland as wl\n"
        "for name in wl.__all__: getattr(wl, name)\n"
        "print([k for k, v in jax.config.values.items() if before.get(k) != v])"
    )
    assert fresh(program) == "[]"
