"""Whom a change of a query may concern."""

from typing import Final

QUERIES: Final = "queries"
"""Topic of everything that may let a waiting query lease go on."""

_ONE: Final = "query:"


def topic_of_query(query_id: str) -> str:
    """Return the topic of every change of one query."""
    return _ONE + query_id


def query_of_topic(topic: str) -> str | None:
    """Return the query whose topic this is; None for any other topic."""
    return topic.removeprefix(_ONE) if topic.startswith(_ONE) else None
