"""The process that starts a user's program, holds it to its limits, and leaves nothing of it: `python warden.py`.

It has one thread, so that limits can be set between fork and exec; and what its programs leave behind becomes its own
child (Linux), whichever session that went to. It serves one program after another, and ends with whoever started it.
The standard library is all it needs.

Each message is its length, in four bytes, and JSON. To it: {argv, env, cwd, limits} with two descriptors to print to,
then {} to end it. From it: {pid}, or {errno, strerror, filename} or {invalid}; then {ended: true} when the program has
ended by itself or is beyond a limit, and at last {code, beyond}.
"""

from __future__ import annotations

import ctypes
import gc
import json
import math
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

LENGTH: Final = struct.Struct("!I")
_CHUNK: Final = 1_048_576
_MEGABYTE: Final = 1_048_576
_SUBREAPER: Final = 36
"""PR_SET_CHILD_SUBREAPER"""
_OWN: Final = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
"""Where the kernel says who our children are, if it does."""
_FIRST_LOOK_S: Final = 0.02
_LOOK_S_MAX: Final = 0.25
_PASSES_MAX: Final = 500
"""How often what does not die is killed again, a hundredth of a second apart, before it is left alone."""


class Stat:
    """What the kernel says of one process."""

    def __init__(self, pid: int) -> None:
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        self.pid = pid
        self.is_dead, self.group = fields[0] == b"Z", int(fields[2])
        self.ticks = sum(map(int, fields[11:15]))
        """Processor time, with that of the children that it waited for."""
        self.pages = int(fields[21])


class Gone(Exception):
    """Nobody is there any more who would hear."""


class Channel:
    """The way to whoever started the warden."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def fileno(self) -> int:
        return self._end.fileno()

    def say(self, message: Mapping[str, Any]) -> None:
        data = json.dumps(message).encode()
        try:
            self._end.sendall(LENGTH.pack(len(data)) + data)
        except OSError as error:
            raise Gone from error

    def hear(self) -> tuple[dict[str, Any], list[int]]:
        """The next message, and the descriptors that came with it."""
        head, descriptors, _, _ = socket.recv_fds(self._end, LENGTH.size, 2)
        head += self._read(LENGTH.size - len(head)) if head else b""
        if not head:
            raise Gone
        return json.loads(self._read(LENGTH.unpack(head)[0])), list(descriptors)

    def _read(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._end.recv(min(size, _CHUNK))
            if not part:
                raise Gone
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class Program:
    """One program of a user, with all that came of it."""

    def __init__(self, order: Mapping[str, Any], out: int, err: int) -> None:
        self._limits: Mapping[str, Any] = order["limits"]
        self._spent_s = _children_s()
        self._beyond: str | None = None
        held = partial(_hold, self._limits) if self._limits.keys() & {"cpu", "cpuTime", "memory", "file"} else None
        self._child = subprocess.Popen(
            order["argv"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=order["cwd"],
            env=order["env"],
            start_new_session=True,
            preexec_fn=held,  # noqa: PLW1509 - there is no other thread here
        )
        self.pid = self._child.pid
        self.is_watched = Path(_OWN).exists() and bool(self._limits.keys() & {"cpuTime", "memory", "processes"})

    @property
    def is_over(self) -> bool:
        """Whether the program itself has ended. It is not reaped: its number is its group's until the end."""
        if self._child.returncode is not None:
            return True
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self._child.poll() is not None
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None

    def look(self) -> None:
        """Kill it where all that came of it is beyond a limit together."""
        self._beyond = self._beyond or self._found_beyond()
        if self._beyond:
            self._kill()

    def end(self) -> dict[str, Any]:
        """Kill whatever is left; what came of it."""
        for _ in range(_PASSES_MAX):
            self._kill()
            if not self.reap() and self.is_over:
                break
            select.select([], [], [], 0.01)
        code = self._child.wait()
        cpu_time = self._limits.get("cpuTime")
        if "file" in self._limits and code in _ended_by(signal.SIGXFSZ):
            self._beyond = self._beyond or "file"
        spent = _children_s() - self._spent_s
        if cpu_time and (code in _ended_by(signal.SIGXCPU) or (code == -signal.SIGKILL and spent >= cpu_time)):
            self._beyond = self._beyond or "cpuTime"
        return {"code": code, "beyond": self._beyond}

    def reap(self) -> int:
        """Let the dead go that the program left to us; how many others it left."""
        left = 0
        for pid in _own_children():
            with suppress(ChildProcessError):
                left += pid != self.pid and os.waitpid(pid, os.WNOHANG)[0] == 0
        return left

    def _family(self) -> Iterator[Stat]:
        waiting = _own_children()
        while waiting:
            pid = waiting.pop()
            try:
                found = Stat(pid)
            except (OSError, ValueError, IndexError):
                continue  # it is gone
            yield found
            waiting += [] if found.is_dead else _children(pid)

    def _kill(self) -> None:
        """Whole groups at once: one that forks while it is killed has no child that escapes."""
        groups = {one.group for one in self._family() if not one.is_dead} | {self.pid}
        for group in groups - {os.getpgrp()}:
            with suppress(ProcessLookupError, PermissionError):  # nobody is left, or only the dead, as macOS puts it
                os.killpg(group, signal.SIGKILL)

    def _found_beyond(self) -> str | None:
        family = [one for one in self._family() if not one.is_dead or one.pid == self.pid]
        processes, memory, cpu_time = (self._limits.get(name) for name in ("processes", "memory", "cpuTime"))
        if processes and len(family) > processes:
            return "processes"
        # Sharing apart takes longer, and is looked for only where it matters.
        if memory and _resident(family) > memory and _megabytes(family) > memory:
            return "memory"
        spent = sum(one.ticks for one in family) / os.sysconf("SC_CLK_TCK") + _children_s() - self._spent_s
        return "cpuTime" if cpu_time and spent >= cpu_time else None


def _ended_by(number: int) -> tuple[int, int]:
    """The exit codes of a signal: of the program's own, and of a shell's whose command had it."""
    return -number, 128 + number


def _own_children() -> list[int]:
    """None where the kernel does not say."""
    try:
        return list(map(int, _read(_OWN).split()))
    except OSError:
        return []


def _children(pid: int) -> list[int]:
    """The children of all threads of a process."""
    found: list[int] = []
    with suppress(OSError):  # it is gone
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - it is done often, and a Path takes its time
            with suppress(OSError):
                found += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    return found


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - likewise
        return b"".join(iter(partial(file.read, 65_536), b""))


def _children_s() -> float:
    """The processor time of all children so far that are reaped."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _resident(family: list[Stat]) -> float:
    """Megabytes of what they have in memory."""
    return sum(one.pages for one in family) * resource.getpagesize() / _MEGABYTE


def _megabytes(family: list[Stat]) -> float:
    """The same, where a page that several processes share is divided among them."""
    return sum(map(_share, family)) / _MEGABYTE


def _share(one: Stat) -> int:
    try:
        lines = _read(f"/proc/{one.pid}/smaps_rollup").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(b"Pss:")) * 1_024
    except ProcessLookupError:
        return 0  # it is gone
    except (OSError, StopIteration, ValueError):
        return one.pages * resource.getpagesize()


def _hold(limits: Mapping[str, Any]) -> None:
    """In the child, before the program: what the kernel holds each process to."""
    if "cpuTime" in limits:
        seconds = math.ceil(limits["cpuTime"])
        _limit(resource.RLIMIT_CPU, seconds, seconds + 1)
    if "file" in limits:
        _limit(resource.RLIMIT_FSIZE, limits["file"] * _MEGABYTE)
    if "memory" in limits:
        # Wide: much may be reserved that is never used. It is the brake between two looks.
        _limit(resource.RLIMIT_DATA, (2 * limits["memory"] + 256) * _MEGABYTE)
    if "cpu" in limits and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        first = os.getpid() % len(cores)
        os.sched_setaffinity(0, (cores[first:] + cores[:first])[: limits["cpu"]])


def _limit(what: int, soft: int, hard: int | None = None) -> None:
    most = resource.getrlimit(what)[1]
    hard = soft if hard is None else hard
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(what, (soft, hard))


def _adopt() -> None:
    """Become the parent of what programs leave behind, where there is such a thing."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)


def _serve(channel: Channel, woken: int) -> None:
    order, descriptors = channel.hear()
    try:
        program = Program(order, *descriptors)
    except OSError as error:
        named = error.filename.decode(errors="replace") if isinstance(error.filename, bytes) else error.filename
        channel.say({"errno": error.errno, "strerror": error.strerror, "filename": named})
        return
    except (ValueError, subprocess.SubprocessError) as error:
        channel.say({"invalid": str(error)})
        return
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    try:
        channel.say({"pid": program.pid})
        _watch(program, channel, woken)
        channel.hear()
    finally:
        ended = program.end()
    channel.say(ended)


def _watch(program: Program, channel: Channel, woken: int) -> None:
    """Until the program has ended, or is to be ended."""
    wait_s = _FIRST_LOOK_S
    while not program.is_over:
        ready, _, _ = select.select([channel.fileno(), woken], [], [], wait_s if program.is_watched else None)
        if channel.fileno() in ready:
            return
        if woken in ready:
            os.read(woken, _CHUNK)
            program.reap()
        elif program.is_watched:
            program.look()
            wait_s = min(2 * wait_s, _LOOK_S_MAX)
    channel.say({"ended": True})


def main() -> None:
    """Serve until nobody is there any more."""
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    # What a program had in its memory, its secrets among it, is for no file.
    _limit(resource.RLIMIT_CORE, 0)
    _adopt()
    gc.disable()  # it keeps nothing that would need it, and a fork copies what it touches
    channel = Channel(socket.socket(fileno=0))
    with suppress(Gone):
        while True:
            _serve(channel, woken)


if __name__ == "__main__":
    main()
