"""The port of secrets: what is sealed opens for what it is for, and for nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweephand.domain.ids import Namespace
from sweephand.domain.secret import Elsewhere
from sweephand.embedded import new_key, open_stores
from sweephand.embedded.seal import Secrets as Sealed
from sweephand.errors import InvalidInput, Refused, Unavailable
from sweephand.secrets import order_of, secret_of
from tests.contract.world import Stores, VirtualClock
from tests.moto_world import Fault, broken, moto_world, unreachable

ONE = secret_of(Namespace("team"), "dsn")
VALUE = "postgres://ä:hunter2@host/db\n"


def test_what_is_sealed_opens_for_what_it_is_for_only(stores: Stores) -> None:
    sealed = stores.secrets.seal(VALUE, ONE)
    assert "hunter2" not in sealed
    assert stores.secrets.unseal(sealed, ONE) == VALUE
    for other in (
        secret_of(Namespace("others"), "dsn"),
        secret_of(Namespace("team"), "other"),
        order_of("team/job/run", 1),
    ):
        assert stores.secrets.unseal(sealed, other) is None


def test_the_same_text_is_never_sealed_to_the_same(stores: Stores) -> None:
    assert stores.secrets.seal(VALUE, ONE) != stores.secrets.seal(VALUE, ONE)


def test_what_was_changed_does_not_open(stores: Stores) -> None:
    sealed = stores.secrets.seal(VALUE, ONE)
    at = len(sealed) - 20
    changed = sealed[:at] + ("A" if sealed[at] != "A" else "B") + sealed[at + 1 :]
    assert stores.secrets.unseal(changed, ONE) is None


def test_64_kilobytes_can_be_sealed(stores: Stores) -> None:
    assert stores.secrets.unseal(stores.secrets.seal("ä" * 32_768, ONE), ONE) == "ä" * 32_768


def test_database_and_key_are_both_needed(tmp_path: Path, clock: VirtualClock) -> None:
    path, old, new = tmp_path / "sweephand.db", new_key(), new_key()
    stores = open_stores(path, clock=clock, secrets_key=lambda: old)
    sealed = stores.secrets.seal(VALUE, ONE)
    stores.close()
    assert Sealed(lambda: new).unseal(sealed, ONE) is None
    assert Sealed(lambda: old).unseal(sealed, ONE) == VALUE


def test_a_key_is_rotated_by_a_new_first_line() -> None:
    old, new = new_key(), new_key()
    sealed = Sealed(lambda: old).seal(VALUE, ONE)
    both = Sealed(lambda: f"{new}\n{old}\n")
    assert both.unseal(sealed, ONE) == VALUE
    again = both.seal(VALUE, ONE)
    assert Sealed(lambda: new).unseal(again, ONE) == VALUE
    assert Sealed(lambda: old).unseal(again, ONE) is None


@pytest.mark.parametrize("key", ["", "no key", "c2hvcnQ="])
def test_a_key_that_is_none_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Sealed(lambda: key).seal(VALUE, ONE)
    assert not key or key not in refused.value.message


def test_on_one_machine_there_are_no_secrets_of_aws(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="knows no secrets of AWS"):
        Sealed(new_key).fetch(Namespace("team"), Elsewhere("ssm", "/x"))


@pytest.mark.parametrize("operation", ["GenerateDataKey", "Decrypt"])
@pytest.mark.parametrize("fault", [broken("x"), unreachable()])
def test_a_key_service_that_does_not_answer_is_unavailable(clock: VirtualClock, operation: str, fault: Fault) -> None:
    def faults(_service: str, asked: str, _params: object) -> Fault | None:
        return fault if asked == operation else None

    with moto_world(clock, faults=faults) as stores, pytest.raises(Unavailable):
        stores.secrets.unseal(stores.secrets.seal(VALUE, ONE), ONE)
