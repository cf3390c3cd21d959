"""Filing a query (specification, section 6)."""

from gateway.domain.moment import Moment, microseconds
from gateway.domain.queries import QueryPolicy, QueryStatus, QuerySubmission, QuerySubmitted
from gateway.domain.refusals import Reason, Refusal
from gateway.queries.topics import QUERIES
from gateway.store.port import Transaction
from gateway.store.query_rows import find_query


def submit_query(tx: Transaction, now: Moment, policy: QueryPolicy, submission: QuerySubmission) -> QuerySubmitted:
    """File a query. The same query_id again answers the existing one and changes nothing."""
    existing = find_query(tx, submission.query_id)
    if existing is not None:
        return QuerySubmitted(existing.query_id, existing.status, created=False)
    tx.change(
        "query_insert",
        query_id=submission.query_id,
        site=submission.site,
        kind=submission.kind,
        params_json=submission.params_json,
        traceparent=submission.traceparent,
        lifetime_ends_us=now.elapsed_us + microseconds(policy.lifetime),
        at=now.utc,
    )
    tx.hint(QUERIES)
    return QuerySubmitted(submission.query_id, QueryStatus.QUEUED, created=True)


def query_not_found(query_id: str) -> Refusal:
    """Make the refusal of a query that is unknown, or deleted after its retention."""
    return Refusal(Reason.QUERY_NOT_FOUND, f"there is no query {query_id}; ended queries are kept for a limited time")
