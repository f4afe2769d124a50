"""`python -m bench [name…]`: run the named benchmarks, or all of them, in sorted order."""

import pkgutil
import sys
from collections.abc import Callable
from importlib import import_module

import bench


def benchmarks() -> dict[str, Callable[[], None]]:
    """Every module of this package that has a `main`, by its name."""
    names = sorted(found.name for found in pkgutil.iter_modules(bench.__path__) if found.name != "__main__")
    modules = {name: import_module(f"bench.{name}") for name in names}
    return {name: module.main for name, module in modules.items() if hasattr(module, "main")}


def run(names: list[str]) -> int:
    """The exit code: 1 where a bar is missed; 2 where a name is not a benchmark, and then none is run."""
    found = benchmarks()
    unknown = [name for name in names if name not in found]
    if unknown:
        print(
            f"No benchmark named {', '.join(unknown)}; there are: {', '.join(found) or 'none'}.",
            file=sys.stderr,
        )
        return 2
    missed = [name for name in names or found if not _meets_its_bars(name, found[name])]
    if missed:
        print(f"\nBars were missed in: {', '.join(missed)}.", file=sys.stderr)
    return 1 if missed else 0


def _meets_its_bars(name: str, measure: Callable[[], None]) -> bool:
    """Measure, and go on with the others whatever comes out."""
    print(f"\n== {name} ==", flush=True)
    try:
        measure()
    except AssertionError as bar:
        print(f"Missed: {bar}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
