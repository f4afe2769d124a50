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
    """The exit code: 2 where a name is not a benchmark, and then none is run."""
    found = benchmarks()
    unknown = [name for name in names if name not in found]
    if unknown:
        print(
            f"No benchmark named {', '.join(unknown)}; there are: {', '.join(found) or 'none'}.",
            file=sys.stderr,
        )
        return 2
    for name in names or found:
        print(f"\n== {name} ==", flush=True)
        found[name]()
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
