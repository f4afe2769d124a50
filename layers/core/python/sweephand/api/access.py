"""The one authorisation table: the least role that each call asks for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sweephand.domain.access import Caller, PrincipalKind, Role
from sweephand.errors import Refused

_V, _O, _E, _A = Role.VIEWER, Role.OPERATOR, Role.EDITOR, Role.ADMIN

LEAST_ROLE: Final[Mapping[str, Role]] = MappingProxyType(
    {
        # Looking.
        "listJobs": _V,
        "getJob": _V,
        "listVersions": _V,
        "listFires": _V,
        "getLedger": _V,
        "listLedgerDays": _V,
        "explainJob": _V,
        "listUpcoming": _V,
        "planJob": _V,
        "listBackfills": _V,
        "getBackfill": _V,
        "listRunsOfJob": _V,
        "getRun": _V,
        "listTasks": _V,
        "readLogs": _V,
        "listArtifacts": _V,
        "readArtifact": _V,
        "explainRun": _V,
        "explainTask": _V,
        "listRuns": _V,
        "listDags": _V,
        "getDagRun": _V,
        "listWorkers": _V,
        "listDeadLetters": _V,
        "listCalendars": _V,
        "getCalendar": _V,
        "listPools": _V,
        "getPool": _V,
        "listTemplates": _V,
        "getTemplate": _V,
        "listSecrets": _V,
        "getSecret": _V,
        "listDatasets": _V,
        "getDataset": _V,
        "listFiles": _V,
        "listAudit": _V,
        "getStats": _V,
        "getOpenapi": _V,
        "getCodeTarget": _V,
        "getCode": _V,
        "listNamespaces": _V,
        "getNamespace": _V,
        "openSession": _V,
        "getSession": _V,
        # Deciding where a task asks: it says itself whom.
        "approveTask": _V,
        "rejectTask": _V,
        # Running what is there.
        "pauseJob": _O,
        "resumeJob": _O,
        "triggerJob": _O,
        "createBackfill": _O,
        "pauseBackfill": _O,
        "resumeBackfill": _O,
        "cancelBackfill": _O,
        "cancelRun": _O,
        "rerunRun": _O,
        "markTask": _O,
        "cancelTask": _O,
        "retryTask": _O,
        "changeRuns": _O,
        "startDagRun": _O,
        "leaseWork": _O,
        "getLease": _O,
        "beatMany": _O,
        "beat": _O,
        "completeWork": _O,
        "failWork": _O,
        "publishEvent": _O,
        "updateDataset": _O,
        "redriveDeadLetter": _O,
        "redriveDeadLetters": _O,
        "getDeadLetter": _V,
        # Changing what is there.
        "createJob": _E,
        "putJob": _E,
        "deleteJob": _E,
        "rollbackJob": _E,
        "createDag": _E,
        "putCalendar": _E,
        "deleteCalendar": _E,
        "putPool": _E,
        "deletePool": _E,
        "putTemplate": _E,
        "deleteTemplate": _E,
        "putSecret": _E,
        "deleteSecret": _E,
        "putCode": _E,
        "openUpload": _E,
        # Deciding about people.
        "putNamespace": _A,
        "deleteNamespace": _A,
        "pauseNamespace": _A,
        "resumeNamespace": _A,
        "listMembers": _A,
        "putMember": _A,
        "removeMember": _A,
        "listTokens": _A,
        "issueToken": _A,
        "revokeToken": _A,
    }
)

PUBLIC_CALLS: Final = frozenset({"getHealth", "getKeys", "download"})
"""These need no token, and tell nothing that needs one; the address of a download is signed instead."""

PLATFORM_CALLS: Final = frozenset({"putNamespace", "deleteNamespace"})
"""Only those to whom every namespace is open may make or remove one."""


AGENT_CALLS: Final = frozenset({"getLease", "beat", "completeWork", "failWork"})
"""All that an agent may do: it knows its own lease, and no other."""


def check_access(caller: Caller, call: str) -> None:
    """Refuse a call that the caller's role does not cover."""
    needed = LEAST_ROLE[call]
    if caller.kind is PrincipalKind.AGENT and call not in AGENT_CALLS:
        raise Refused("An agent may only speak about its own lease.")
    if not caller.role.covers(needed):
        raise Refused(f"The role {caller.role} may not do this: it takes {needed}.")
    if call in PLATFORM_CALLS and not caller.is_platform:
        raise Refused("Only an administrator of the platform may do this.")
