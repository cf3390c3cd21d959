"""Where dispatch is paused; in the table the empty site stands for all sites."""

from gateway.domain.health import Pause
from gateway.domain.instant import Instant
from gateway.domain.models import Actor
from gateway.store.port import ReadTransaction, Transaction


def standing(tx: ReadTransaction) -> tuple[Pause, ...]:
    """Return the pauses, the one of all sites first."""
    return tuple(
        Pause(row["site"] or None, row["paused_at"], row["paused_by"], row["reason"]) for row in tx.all("pauses_all")
    )


def of_all_sites(tx: ReadTransaction) -> Pause | None:
    """Return the pause of all sites, if it stands."""
    return next((pause for pause in standing(tx) if pause.site is None), None)


def add(tx: Transaction, now: Instant, site: str, reason: str, actor: Actor) -> bool:
    """Pause a site ("": all); False if it is paused already, and that pause is left as it is."""
    return tx.change("pause_set", site=site, at=now.utc, by=actor.identity, reason=reason) > 0


def lift(tx: Transaction, site: str) -> bool:
    """Lift the pause of a site ("": the one of all sites); False if there is none."""
    return tx.change("pause_lift", site=site) > 0
