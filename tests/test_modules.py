"""The package's map is whole, and imports run one way."""

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "daemon/flightrec"


def imported_modules(path: Path) -> set[str]:
    """Modules of the package that are imported when this one is: not inside functions."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("flightrec"):
            parts = (node.module or "").split(".")
            names = parts[1:2] if len(parts) > 1 else [alias.name for alias in node.names]
            found.update(names)
    return found


def test_every_module_stands_in_the_map() -> None:
    text = (PACKAGE.parent / "README.md").read_text()
    named = set(re.findall(r"`([a-z_]+)`", text))
    there = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}

    assert there - named == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {path.stem: imported_modules(path) for path in PACKAGE.glob("*.py")}
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " → ".join((*way[way.index(module) :], module))
        if module in done:
            return
        for other in graph.get(module, ()):
            visit(other, (*way, module))
        done.add(module)

    for module in graph:
        visit(module, ())
