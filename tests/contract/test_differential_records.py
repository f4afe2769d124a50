"""Documents, deeds, replies and offers in any order: SQLite and DynamoDB must give the same answers.

Where the ports leave room, so do the comparisons: what is forgotten may be gone or not, so nobody settles it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule
from msgspec.structs import replace

from sweephand.domain.ids import Namespace, RunKey
from sweephand.domain.trail import Deed
from sweephand.ports import Offer, Reply
from tests.contract.both import BothEngines
from tests.contract.samples import DEFAULT, MINUTE, NOW, SECOND, STRANGE, TICK, deed_at, key_of, run_at

OTHER: Final = Namespace("other")
NAMESPACES: Final = (DEFAULT, OTHER)
KINDS: Final = ("pool", "pools", "member")
QUEUES: Final = ("default", "g#p/u|", "x" * 1_000)
KEYS: Final = ("k", "a#b", "ä" * 1_000)
WEEK: Final = timedelta(days=7)

namespaces: Final = st.sampled_from(NAMESPACES)
kinds: Final = st.sampled_from(KINDS)
names: Final = st.sampled_from(STRANGE[:8])
limits: Final = st.integers(1, 5)
weeks: Final = st.integers(-6, 6).map(lambda n: NOW + n * WEEK)
ids: Final = st.sampled_from((*STRANGE, "x" * 1_000))
holders: Final = st.sampled_from(("ada", "bob", "eve"))
seconds: Final = st.integers(0, 90)
runs: Final = st.builds(
    lambda name, minute: run_at(NOW + minute * MINUTE, key_of(name)).key,
    st.sampled_from(("a", "a-b", "a.b", "B")),
    st.integers(0, 2),
)
offers: Final = st.builds(
    lambda run, tick, nonce: Offer(NOW + tick * TICK, run, nonce),
    runs,
    st.integers(-1, 1),
    st.sampled_from(("", "x", "y")),
)


def _places(offered: list[Offer]) -> set[tuple[datetime, RunKey]]:
    """What they are about: the last of several for one run at one moment replaces the others."""
    return {(one.at, one.run) for one in offered}


class Records(BothEngines):
    """Whatever happens, both say the same."""

    def begin(self) -> None:
        self.forgotten_at: dict[tuple[Namespace, str], datetime] = {}

    # Documents and deeds.

    @rule(namespace=namespaces, kind=kinds, name=names, expected=st.integers(0, 3), audited=st.booleans(), at=weeks)
    def put(self, namespace: Namespace, kind: str, name: str, expected: int, audited: bool, at: datetime) -> None:
        document = {"n": next(self.numbers), "days": [1, None, "x"], "ratio": expected / 7}
        deed = self._deed(at, namespace) if audited else None
        for _ in range(2):
            self.both(lambda stores: stores.shared.put(namespace, kind, name, document, expected=expected, deed=deed))
        self.both(lambda stores: stores.shared.get(namespace, kind, name))

    @rule(namespace=namespaces, kind=kinds, name=names, expected=st.integers(0, 2), audited=st.booleans(), at=weeks)
    def delete(self, namespace: Namespace, kind: str, name: str, expected: int, audited: bool, at: datetime) -> None:
        deed = self._deed(at, namespace) if audited else None
        for _ in range(2):
            self.both(lambda stores: stores.shared.delete(namespace, kind, name, expected=expected, deed=deed))
        self.both(lambda stores: stores.shared.get(namespace, kind, name))

    @rule(kind=kinds, name=names)
    def look_in_each(self, kind: str, name: str) -> None:
        self.both(lambda stores: stores.shared.in_each(NAMESPACES, kind, name))

    def _deed(self, at: datetime, namespace: Namespace) -> Deed:
        return deed_at(at, f"n{next(self.numbers)}", namespace)

    @rule(namespace=namespaces, kind=kinds, after=st.none() | ids, limit=limits)
    def list_documents(self, namespace: Namespace, kind: str, after: str | None, limit: int) -> None:
        self.both(lambda stores: stores.shared.listed(namespace, kind, after=after, limit=limit))

    @rule(namespace=namespaces, at=weeks, deed_id=ids)
    def append(self, namespace: Namespace, at: datetime, deed_id: str) -> None:
        self.both(lambda stores: stores.trail.append(deed_at(at, deed_id, namespace)))

    @rule(namespace=namespaces, at=weeks, deed_id=ids, limit=limits)
    def read_deeds(self, namespace: Namespace, at: datetime, deed_id: str, limit: int) -> None:
        self.both(lambda stores: stores.trail.deeds(namespace, limit=limit))
        self.both(lambda stores: stores.trail.deeds(namespace, before=deed_at(at, deed_id, namespace), limit=limit))

    # Replies.

    @rule(
        namespace=namespaces,
        key=st.sampled_from(KEYS),
        asked=st.sampled_from(("this", "that")),
        holder=holders,
        held_s=seconds,
        kept_s=seconds,
    )
    def reserve(self, namespace: Namespace, key: str, asked: str, holder: str, held_s: int, kept_s: int) -> None:
        now = self.clock.now()
        until = now + kept_s * SECOND
        reply = Reply(asked, f"{holder}-{next(self.numbers)}", now + held_s * SECOND)
        self.both(lambda stores: stores.replies.reserve(namespace, key, reply, now=now, until=until))
        in_place = self.both(lambda stores: stores.replies.reserve(namespace, key, reply, now=now, until=until))
        if in_place.holder == reply.holder:
            self.forgotten_at[namespace, key] = until
        if holder == "eve":
            return  # she takes keys and never answers
        self._end(namespace, key, in_place if holder == "ada" else reply, gives_up=held_s % 3 == 0)

    def _end(self, namespace: Namespace, key: str, reply: Reply, *, gives_up: bool) -> None:
        """The holder answers or gives up, or another does who believes to be the holder."""
        until = self.clock.now() + MINUTE
        if self.clock.now() > self.forgotten_at[namespace, key]:
            return
        if gives_up:
            self.both(lambda stores: stores.replies.release(namespace, key, reply))
        elif self.both(
            lambda stores: stores.replies.settle(namespace, key, replace(reply, answer="done"), until=until)
        ):
            self.forgotten_at[namespace, key] = until

    # Offers.

    @rule(queue=st.sampled_from(QUEUES), offer=offers)
    def offer(self, queue: str, offer: Offer) -> None:
        self.both(lambda stores: stores.offers.offer(queue, offer))

    @rule(queue=st.sampled_from(QUEUES), withdrawn=st.lists(offers, max_size=30), limit=limits)
    def withdraw(self, queue: str, withdrawn: list[Offer], limit: int) -> None:
        found = self._open_offers(queue, limit)
        self.both(lambda stores: stores.offers.withdraw(queue, [*withdrawn, *found[1:]]))
        self._open_offers(queue, limit)

    @rule(queue=st.sampled_from(QUEUES), meanwhile=st.lists(offers, max_size=5))
    def withdraw_too_late(self, queue: str, meanwhile: list[Offer]) -> None:
        found = self._open_offers(queue, 1_000)
        for one in meanwhile:
            self.offer(queue, one)
        self.both(lambda stores: stores.offers.withdraw(queue, found))
        left = self._open_offers(queue, 1_000)
        assert _places(meanwhile) - _places(found) <= _places(left)

    def _open_offers(self, queue: str, limit: int) -> list[Offer]:
        return self.both(lambda stores: stores.offers.open(DEFAULT, queue, limit=limit))

    def compare_everything(self) -> None:
        for namespace in NAMESPACES:
            self._compare_trail(namespace)
            for kind in KINDS:
                self._compare_documents(namespace, kind)
        for queue in QUEUES:
            self._open_offers(queue, 1_000)

    def _compare_trail(self, namespace: Namespace) -> None:
        self.both(lambda stores: stores.trail.deeds(namespace, limit=1_000))

    def _compare_documents(self, namespace: Namespace, kind: str) -> None:
        self.both(lambda stores: stores.shared.listed(namespace, kind, limit=1_000))


TestRecords = Records.TestCase
TestRecords.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
