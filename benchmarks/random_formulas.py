"""A hundred random laws from a stated grammar, written once to ``random_formulas.txt``.

A tree of 5 to 13 nodes over one to four variables in [1, 3]. A node is, with these weights,

* a leaf: a variable (4) or a constant from {1/2, 2, 3, 5, pi} (1),
* a function of one node: sqrt, log, exp, sin, cos or the square (1 each),
* a sum, a difference, a product or a quotient of two nodes (2, 1, 3, 2).

Inside log, exp, sin and cos there is no other one of these four, as in the laws of textbooks.

A law is drawn again unless it is finite everywhere on the ranges, varies by at least a hundredth of
its size, has no value beyond a thousand times its median absolute value, depends on every variable
(a change of a variable changes it by at least a hundredth of its standard deviation), keeps 5 to 25
nodes as SymPy writes it, and is not another one of the hundred.
"""

from pathlib import Path

import numpy as np
import sympy

FILE = Path(__file__).with_name("random_formulas.txt")
COUNT, SEED, LOW, HIGH = 100, 2026, 1, 3
_CONSTANTS = ("1/2", "2", "3", "5", "pi")
_FUNCTIONS = ("sqrt", "log", "exp", "sin", "cos", "square")
_PAIRS, _PAIR_WEIGHTS = ("+", "-", "*", "/"), (2, 1, 3, 2)


def draw_tree(rng, size, names):
    """The text of a random tree with so many nodes."""
    if size <= 1:
        if rng.random() < 0.8:
            return str(rng.choice(names))
        return str(rng.choice(_CONSTANTS))
    if size == 2 or rng.random() < sum((1,) * 6) / (6 + sum(_PAIR_WEIGHTS)):
        name = str(rng.choice(_FUNCTIONS))
        inner = draw_tree(rng, size - 1, names)
        return f"({inner})^2" if name == "square" else f"{name}({inner})"
    weights = np.array(_PAIR_WEIGHTS) / sum(_PAIR_WEIGHTS)
    sign = str(rng.choice(_PAIRS, p=weights))
    left = int(rng.integers(1, size - 1))
    first, second = draw_tree(rng, left, names), draw_tree(rng, size - 1 - left, names)
    return f"({first}{sign}{second})"


def is_nested(expression):
    """Whether one of log, exp, sin and cos is inside another one."""
    kinds = (sympy.log, sympy.exp, sympy.sin, sympy.cos)
    return any(node.args[0].has(*kinds) for node in expression.atoms(*kinds))


def is_sound(expression, names, rng):
    """Whether a law keeps to the rules."""
    symbols = sympy.symbols(names)
    symbols = symbols if isinstance(symbols, list | tuple) else [symbols]
    if expression.free_symbols != set(symbols) or is_nested(expression):
        return False
    nodes = sum(1 for _ in sympy.preorder_traversal(expression))
    if not 5 <= nodes <= 25 or expression.has(sympy.I, sympy.zoo, sympy.nan):
        return False
    law = sympy.lambdify(symbols, expression, "numpy")
    rows = rng.uniform(LOW, HIGH, (2_000, len(names)))
    with np.errstate(all="ignore"):
        values = np.asarray(law(*rows.T.astype(complex))) * np.ones(len(rows))
        if not np.isfinite(values).all() or np.any(np.abs(values.imag) > 1e-12 * np.abs(values)):
            return False
        values = values.real
        size = np.abs(values)
        if values.std() < 0.01 * size.max() or size.max() > 1e3 * np.median(size):
            return False
        for j in range(len(names)):
            moved = rows.copy()
            moved[:, j] = rng.permutation(moved[:, j])
            if np.std(law(*moved.T.astype(complex)).real - values) < 0.01 * values.std():
                return False
    return True


def main():
    rng = np.random.default_rng(SEED)
    found = {}
    while len(found) < COUNT:
        names = ["a", "b", "c", "d"][: int(rng.integers(1, 5))]
        text = draw_tree(rng, int(rng.integers(5, 14)), names)
        try:
            expression = sympy.sympify(text.replace("^", "**"))
            sound = is_sound(expression, names, rng)
        except (TypeError, ValueError, ZeroDivisionError, AttributeError, OverflowError):
            continue
        if sound:
            found.setdefault(str(expression), (str(expression).replace("**", "^"), names))
    lines = [
        f"Random-{k}|{text.replace(' ', '')}|{' '.join(names)} {LOW} {HIGH}"
        for k, (text, names) in enumerate(found.values(), 1)
    ]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
