"""One query in the worker's hand, from the lease to its outcome. Whatever goes wrong, it has exactly one.

| what went wrong                                          | error_code |
|----------------------------------------------------------|------------|
| malformed parameters                                     | 422        |
| the site's own error (logged out: 5001)                  | its code   |
| the site is down, refuses, or shows a page that changed  | 502        |
| the time limit, waiting for the account included         | 504        |
| not implemented for this site                            | 501        |
| the result is too large                                  | 413        |
| a fault of this program                                  | 500        |
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

import httpx
from ordergateway.v1 import query_leases_pb2 as pb

from common.target import Target
from worker.account_lock import AccountLocks
from worker.account_queries.kinds import MalformedParamsError, parse_query
from worker.account_queries.port import Outcome
from worker.account_queries.size import ResultTooLargeError, to_text
from worker.journal.carryable import MAX_ERROR_CODE, carryable_text
from worker.sites.port import Site, SiteError

_log = logging.getLogger(__name__)

MALFORMED, TOO_LARGE, FAULT, NOT_IMPLEMENTED, SITE_FAILED, TIMED_OUT = 422, 413, 500, 501, 502, 504
MAX_MESSAGE = 4_000


@dataclass(frozen=True, slots=True)
class QueryPolicy:
    """Most seconds that one query may take, pages that a list reads unless told otherwise, most bytes of a result."""

    timeout_seconds: float
    default_max_pages: int
    max_result_bytes: int


class Reader:
    """Executes queries, taking turns with everything else that uses the account."""

    def __init__(self, sites: Mapping[Target, Site], accounts: AccountLocks, policy: QueryPolicy) -> None:
        self._sites = sites
        self._accounts = accounts
        self._policy = policy

    async def execute(self, lease: pb.QueryLease, *, seconds: float) -> Outcome:
        """Return the query's outcome, within `seconds` or the policy's limit, whichever is shorter."""
        limit = min(seconds, self._policy.timeout_seconds)
        target = Target(lease.site, lease.account)
        lock = self._accounts.of(target)
        waiting = True
        timer = asyncio.timeout(limit)
        try:
            site = self._sites.get(target)
            if site is None:
                return _failed(NOT_IMPLEMENTED, f"this worker cannot read {target}")
            query = parse_query(lease.kind, lease.params_json, default_max_pages=self._policy.default_max_pages)
            async with timer, lock:
                waiting = False
                result = await query.read(site)
            return Outcome(to_text(result, max_bytes=self._policy.max_result_bytes))
        except MalformedParamsError as error:
            return _failed(MALFORMED, str(error))
        except ResultTooLargeError as error:
            return _failed(TOO_LARGE, str(error))
        except SiteError as error:
            return _failed(SITE_FAILED if error.error_code is None else error.error_code, str(error))
        except NotImplementedError as error:
            return _failed(NOT_IMPLEMENTED, str(error))
        except (OSError, httpx.HTTPError) as error:
            if not timer.expired():
                return _failed(SITE_FAILED, f"the site cannot be reached: {error or type(error).__name__}")
            why = "the account was in use, by an order or another query" if waiting else "the site was too slow"
            return _failed(TIMED_OUT, f"not done within {limit:g} s: {why}; reading again does no harm")
        except Exception as error:  # noqa: BLE001 -- logged and told to the gateway
            _log.exception("a query failed by a fault of this program", extra={"query_id": lease.query_id})
            return _failed(FAULT, f"a fault of the worker: {type(error).__name__}")


def _failed(code: int, message: str) -> Outcome:
    """Return an error that the contract can carry, whatever code and words a site's adapter gave it."""
    told = FAULT if not 0 <= code <= MAX_ERROR_CODE else code
    return Outcome(code=told, message=carryable_text(message, MAX_MESSAGE).strip() or f"error {code}")
