"""Topics that say for which target something may go on, so that those who wait for others need not be looked at.

Beside its bare topic, by which anybody may be woken, a change notifies a second one that names the target; or that it
may concern all of them, as the end of a pause does.
"""

from collections.abc import Collection
from typing import Final

from common.target import Target

_OF: Final = "@"
_ALL: Final = "*"


def hint(topic: str, target: Target | None) -> str:
    """Return the topic of what may go on for a target; None: for any."""
    return f"{topic}{_OF}{_ALL if target is None else f'{target.site}/{target.account}'}"


def hinted(topic: str, notified: Collection[str]) -> frozenset[Target] | None:
    """Return the targets that these topics name beside `topic`; None: any may be concerned."""
    named = [one.removeprefix(topic + _OF) for one in notified if one.startswith(topic + _OF)]
    if _ALL in named or (topic in notified and not named):
        return None
    return frozenset(Target(*one.split("/", 1)) for one in named)
