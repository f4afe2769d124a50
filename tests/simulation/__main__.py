"""`python -m tests.simulation --seeds n [--engine sqlite|moto]`, or `--seed k` for one with its story."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from statistics import median
from time import perf_counter

from tests.simulation.scenario import Result, simulate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many seeds (default 300)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default 0)")
    parser.add_argument("--seed", type=int, help="only this seed, with its story")
    parser.add_argument("--engine", choices=("sqlite", "moto"), default="sqlite")
    parser.add_argument("--dags", action="store_true", help="worlds with jobs of several tasks")
    parser.add_argument("--machines", action="store_true", help="the same, advanced by executions of a machine")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: one per core)")
    options = parser.parse_args()
    world = {"dags": options.dags, "machines": options.machines}
    if options.seed is not None:
        result = simulate(options.seed, options.engine, **world)
        print("\n".join(result.story))
        print(summary([result], 0))
        return report([result], **world)
    began = perf_counter()
    seeds = range(options.first, options.first + options.seeds)
    with ProcessPoolExecutor(options.jobs, initializer=be_quiet) as pool:
        found = pool.map(partial(simulated, engine=options.engine, **world), seeds, chunksize=4)
        results = list(watched(found, len(seeds)))
    print(summary(results, perf_counter() - began))
    return report(results, **world)


def be_quiet() -> None:
    """Every injected fault is logged by whoever survives it: of thousands of seeds nobody reads that."""
    logging.disable()


def watched(results: Iterable[Result], total: int) -> Iterator[Result]:
    """The same results; whoever looks on sees how far it is."""
    failed = 0
    for n, one in enumerate(results, 1):
        failed += bool(one.violations)
        if sys.stderr.isatty():
            print(f"\r{n} of {total} seeds, {failed} failed", end="\n" if n == total else "", file=sys.stderr)
        yield one


def simulated(seed: int, engine: str, **world: bool) -> Result:
    """A seed's result; thousands of stories with a good end would only fill the memory."""
    result = simulate(seed, engine, **world)
    return result if result.violations else replace(result, story=[])


def summary(results: list[Result], seconds: float) -> str:
    """The figures of a batch of seeds."""

    def middle(values: Iterable[int]) -> int:
        return round(median(values))

    return (
        f"{len(results)} seeds on {results[0].engine} in {seconds:.0f} s; median seed: "
        f"{middle(one.jobs for one in results)} jobs, {middle(one.fires for one in results)} fires, "
        f"{middle(one.faults for one in results)} faults, {middle(one.crashes for one in results)} crashes"
    )


def again(one: Result, **world: bool) -> str:
    """The command that shows a seed again, with its story."""
    chosen = "".join(f" {name.upper()}=1" for name, is_so in world.items() if is_so)
    return f"make simulate SEED={one.seed} ENGINE={one.engine}{chosen}"


def report(results: list[Result], **world: bool) -> int:
    """Name what failed and how to see it again."""
    failed = [one for one in results if one.violations]
    for one in failed[:20]:
        print(f"seed {one.seed} ({one.kind}): {again(one, **world)}")
        for violation in one.violations[:5]:
            print(f"    {violation}")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
