"""Filing a query (docs/specification.md#query-submission)."""

from common.target import Target
from gateway import targets
from gateway.account_queries.transition import file
from gateway.domain.account_queries import Query, QueryPolicy, QuerySubmission, QuerySubmitted
from gateway.domain.instant import Instant, microseconds
from gateway.domain.json_text import same_object
from gateway.domain.refusals import Reason, Refusal
from gateway.store import account_queries
from gateway.store.port import Transaction


def submit_query(
    tx: Transaction, now: Instant, policy: QueryPolicy, submission: QuerySubmission, identity: str
) -> QuerySubmitted | Refusal:
    """File a query. The same query_id again answers the existing one and changes nothing.

    Refused where its target is one more than its token may name.
    """
    existing = account_queries.find(tx, submission.query_id)
    if existing is not None:
        return QuerySubmitted(existing.query_id, existing.status, created=False, differs=_differs(existing, submission))
    refusal = targets.use(tx, now, (Target(submission.site, submission.account),), identity)
    return refusal or file_query(tx, now, policy, submission)


def file_query(tx: Transaction, now: Instant, policy: QueryPolicy, submission: QuerySubmission) -> QuerySubmitted:
    """File a query that does not exist, at a target that is known."""
    status = file(tx, now, submission, now.elapsed_us + microseconds(policy.lifetime))
    return QuerySubmitted(submission.query_id, status, created=True)


def _differs(existing: Query, again: QuerySubmission) -> tuple[str, ...]:
    """Name the fields in which a query is submitted again with other values."""
    same = {
        "site": existing.site == again.site,
        "account": existing.account == again.account,
        "kind": existing.kind == again.kind,
        "params_json": same_object(existing.params_json, again.params_json),
    }
    return tuple(name for name, is_same in same.items() if not is_same)


def query_not_found(query_id: str) -> Refusal:
    """Make the refusal of a query that is unknown, or deleted after its retention."""
    return Refusal(Reason.QUERY_NOT_FOUND, f"there is no query {query_id}; ended queries are kept for a limited time")
