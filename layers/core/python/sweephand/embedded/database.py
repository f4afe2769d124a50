"""One SQLite file for many threads and processes: group commit, snapshot reads, migrations.

Writers queue. The first to come leads: it runs all that is waiting in one transaction, pays for one sync of the
disk, releases them, and hands the lead to the first of those who came meanwhile. There is no window to wait for:
a lone writer commits at once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock, local
from traceback import clear_frames
from typing import Any, Final, Generic, TypeVar

from sweephand.embedded.schema import MIGRATIONS, Migration, prepare
from sweephand.errors import Defect, InvalidInput, Unavailable

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
Row = tuple[Any, ...]

BUSY_S: Final = 10.0
"""How long to wait for another process's transaction."""


_SETTINGS: Final = (
    "synchronous = FULL",
    "foreign_keys = OFF",
    "temp_store = MEMORY",
    "cache_size = -4000",  # KB; each connection has its own, and the operating system keeps the pages besides
    "wal_autocheckpoint = 4000",
)


class _Ticket(Generic[T]):
    """A piece of work in the queue. Its turn comes when it is settled, or when it must lead."""

    __slots__ = ("error", "leads", "result", "settled", "turn", "work")

    def __init__(self, work: Work[T]) -> None:
        self.work = work
        self.turn: Lock | None = None
        self.leads = False
        self.settled = False
        self.result: T | None = None
        self.error: BaseException | None = None

    def queue_up(self) -> None:
        self.turn = Lock()
        self.turn.acquire()

    def call(self) -> None:
        if self.turn is not None:
            self.turn.release()

    def succeed(self, result: T) -> None:
        self.result, self.settled = result, True

    def fail(self, error: BaseException) -> None:
        clear_frames(error.__traceback__)  # a cursor in there must not outlive this thread's turn
        self.error, self.settled = translated(error), True
        if self.error is not error:
            self.error.__cause__ = error


class _Inside(local):
    """What the code that this thread runs in `together` is inside of."""

    transaction: sqlite3.Connection | None = None
    error: sqlite3.Error | None = None


class Database:
    """The connections to one file, or to a memory of its own (`path` None)."""

    def __init__(
        self,
        path: Path | None,
        *,
        migrations: Sequence[Migration] = MIGRATIONS,
        busy_s: float = BUSY_S,
    ) -> None:
        self._path = path
        self._busy_s = busy_s
        self._mutex = Lock()
        self._waiting: list[_Ticket[Any]] = []
        self._led = False
        self._gate = Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._inside = _Inside()
        self.commits = 0
        """Transactions so far: fewer than writes where writers waited together."""
        self._writer = self._opened(lambda connection: prepare(connection, path, migrations))

    def write(self, work: Work[T]) -> T:
        """Run the work in a transaction, perhaps together with others', and answer once it is on the disk."""
        if self._inside.transaction is not None:
            return self._write_inside(self._inside.transaction, work)
        ticket = _Ticket(work)
        with self._mutex:
            self._waiting.append(ticket)
            if self._led:
                ticket.queue_up()
            self._led = True
        if ticket.turn is not None:
            try:
                ticket.turn.acquire()
            except BaseException:
                self._abandon(ticket)
                raise
        if not ticket.settled:
            self._lead()
        if ticket.error is not None:
            raise ticket.error
        return ticket.result  # type: ignore[return-value]  # settled without an error: the work's own result

    def together(self, work: Callable[[], T]) -> T:
        """Run code whose writes become one transaction, and whose reads see them: all of it is on the disk then, or
        none. It may be run more than once, so it answers by its result only."""

        def inside(connection: sqlite3.Connection) -> T:
            self._inside.transaction, self._inside.error = connection, None
            try:
                result = work()
            finally:
                self._inside.transaction = None
            if self._inside.error is not None:
                raise self._inside.error  # the code went on without a write that failed: half of it is no result
            return result

        return work() if self._inside.transaction is not None else self.write(inside)

    def run(self, statement: str, parameters: Sequence[Any]) -> None:
        """Write with one statement."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(statement, parameters)

        self.write(work)

    def run_each(self, statement: str, many: Sequence[Row]) -> None:
        """Write with one statement for every set of parameters, in one transaction; nothing where there is none."""

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(statement, many)

        if many:
            self.write(work)

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """A query that sees everything committed before it began."""
        return self._read(lambda connection: connection.execute(query, parameters).fetchall())

    def each(self, query: str, many: Sequence[Sequence[Any]]) -> list[Row]:
        """The rows of a query for every set of parameters."""
        return self._read(
            lambda connection: [row for parameters in many for row in connection.execute(query, parameters)]
        )

    def row(self, query: str, parameters: Sequence[Any] = ()) -> Row | None:
        """The first row of a query."""
        found = self.rows(query, parameters)
        return found[0] if found else None

    @property
    def waiting(self) -> int:
        """How many writers wait for the transaction under way."""
        return len(self._waiting)

    def foreign_version(self) -> int:
        """A number that changes when another process commits; our own writes, on one connection, do not count."""
        with self._gate:
            rows = self._on(self._writer, lambda connection: connection.execute("PRAGMA data_version").fetchall())
        version: int = rows[0][0]
        return version

    def close(self) -> None:
        """Wait for the transaction under way; later calls are refused."""
        with self._gate:
            self._closed = True
            while self._idle:
                self._idle.pop().close()
            self._writer.close()

    def _write_inside(self, connection: sqlite3.Connection, work: Work[T]) -> T:
        if self._inside.error is not None:
            raise Unavailable("An earlier write of this transaction failed.")
        try:
            return work(connection)
        except sqlite3.Error as error:
            self._inside.error = error
            raise translated(error) from error

    def _lead(self) -> None:
        with self._mutex:
            group, self._waiting = self._waiting, []
        try:
            with self._gate:
                self._settle(group)
        except sqlite3.Error as error:
            _fail([ticket for ticket in group if not ticket.settled], error)
        finally:
            with self._mutex:
                heir = self._waiting[0] if self._waiting else None
                self._led = heir is not None
                if heir is not None:
                    heir.leads = True
            for ticket in group:
                if not ticket.settled:
                    ticket.fail(Unavailable("The write was interrupted: repeat it."))
                ticket.call()
            if heir is not None:
                heir.call()

    def _settle(self, group: Sequence[_Ticket[Any]]) -> None:
        """One transaction for all; where one of them raises, one for each, so that its error is its own."""
        if not group:
            return
        try:
            self._begin()
        except sqlite3.Error as error:
            _fail(group, error)
            return
        try:
            results = [self._result(ticket) for ticket in group]
        except Exception as error:  # noqa: BLE001  # it is handed to the caller whose work raised it
            self._roll_back()
            if len(group) == 1:
                group[0].fail(error)
                return
            for ticket in group:
                self._settle([ticket])
            return
        try:
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            # Not repeated here: it may be on the disk, and only callers can recognise their own writes.
            self._roll_back()
            _fail(group, error)
            return
        self.commits += 1
        for ticket, result in zip(group, results, strict=True):
            ticket.succeed(result)

    def _result(self, ticket: _Ticket[T]) -> T:
        result = ticket.work(self._writer)
        if isinstance(result, sqlite3.Cursor):
            raise Defect("A cursor would leave its transaction, and be reset by a thread that does not lead.")
        return result

    def _begin(self) -> None:
        if self._closed:
            raise sqlite3.OperationalError("the store is closed")
        self._roll_back()  # an interrupted leader may have left its transaction open
        self._writer.execute("BEGIN IMMEDIATE")

    def _roll_back(self) -> None:
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def _abandon(self, ticket: _Ticket[Any]) -> None:
        """The caller was interrupted in the queue: the lead, if it came to it meanwhile, must not end there."""
        with self._mutex:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
        if ticket.leads:
            self._lead()

    def _read(self, work: Work[list[Row]]) -> list[Row]:
        if self._inside.transaction is not None:
            return self._on(self._inside.transaction, work)
        if self._path is None:
            with self._gate:
                return self._on(self._writer, work)
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._opened(lambda connection: connection.execute("PRAGMA query_only = ON"))
        try:
            return self._on(connection, work)
        finally:
            if self._closed:
                connection.close()
            else:
                self._idle.append(connection)

    def _on(self, connection: sqlite3.Connection, work: Work[list[Row]]) -> list[Row]:
        if self._closed:
            raise Unavailable("The store is closed.")
        try:
            return work(connection)
        except sqlite3.Error as error:
            clear_frames(error.__traceback__)  # as above: the connection is about to be another's
            raise translated(error) from error

    def _opened(self, prepared: Work[object]) -> sqlite3.Connection:
        """A new connection, once it is prepared."""
        try:
            connection = sqlite3.connect(
                self._path if self._path is not None else ":memory:",
                timeout=self._busy_s,
                isolation_level=None,
                check_same_thread=False,
            )
        except sqlite3.Error as error:
            raise translated(error) from error
        try:
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
            prepared(connection)
        except sqlite3.Error as error:
            connection.close()
            if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                raise InvalidInput(f"{self._path} is not a Sweephand file: name another.", "path") from error
            raise translated(error) from error
        except BaseException:
            connection.close()
            raise
        return connection


def translated(error: BaseException) -> BaseException:
    """SQLite's errors in our words: what may pass is `Unavailable`, anything else is our own fault."""
    if isinstance(error, sqlite3.OperationalError):
        return Unavailable(f"The store did not answer: {error}.")
    if isinstance(error, sqlite3.Error):
        return Defect(f"The store refused a statement: {error}.")
    return error


def _fail(group: Sequence[_Ticket[Any]], error: sqlite3.Error) -> None:
    for ticket in group:
        ticket.fail(error)
