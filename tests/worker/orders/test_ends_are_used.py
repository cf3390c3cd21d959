"""A step's end is a value: nothing in the worker's orders may call a step and pass over what it returns."""

import ast
from pathlib import Path

import worker.orders

FILES = sorted(Path(worker.orders.__file__).parent.glob("*.py"))
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions_with_ends(tree: ast.AST) -> set[str]:
    """The names of functions whose declared result can be an End."""
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, Function) and node.returns is not None and "End" in names_in(node.returns)
    }


def names_in(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def passed_over(tree: ast.AST, names: set[str]) -> list[tuple[int, str]]:
    """Line and name of each call of one of these whose result is used by nobody."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Expr):
            continue
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(call, ast.Call):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name in names:
                found.append((node.lineno, name))
    return found


def test_no_end_is_passed_over() -> None:
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in FILES}
    names = set[str]().union(*map(functions_with_ends, trees.values()))
    assert {"step", "submit", "recover", "confirm", "pay"} <= names
    calls = {file.name: passed_over(tree, names) for file, tree in trees.items()}
    assert not {file: lines for file, lines in calls.items() if lines}


def test_a_passed_over_end_is_seen_however_it_is_called() -> None:
    steps = ast.parse("async def step() -> int | End: ...\ndef guard() -> End | None: ...\ndef other() -> int: ...")
    names = functions_with_ends(steps)
    assert names == {"step", "guard"}
    calls = ast.parse("async def f():\n await run.step()\n guard()\n other()\n end = guard()\n return await run.step()")
    assert passed_over(calls, names) == [(2, "step"), (3, "guard")]
