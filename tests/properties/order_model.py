"""The order machine as docs/specification.md tells it: no tables, no SQL, one value a task.

Answers where the rules leave a choice are sets: a permit that several rules forbid may be refused by any of them.
"""

from gateway.domain.leases import Verdict
from gateway.domain.models import AlertKind
from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, Placement, TaskStatus
from tests.properties.modelled_order import NOBODY, Held, Order
from tests.properties.order_terms import (
    ACKNOWLEDGE,
    FACTS,
    PERMIT_TTL,
    TTL,
    Filed,
    Given,
    Holder,
    Look,
    Process,
    Refused,
    Seen,
    Told,
    View,
    refused,
)

S = TaskStatus
NOTHING_PLACED = (OrderState.CREATED, OrderState.IN_CART)
ENDED = (S.SUCCEEDED, S.FAILED, S.NEEDS_HUMAN)
BY_STATE = {OrderState.PAID: S.SUCCEEDED, OrderState.CANCELLED: S.FAILED}
REASON = "a reason"


class OrderModel:
    """All tasks and the person's switches. `now` is elapsed time; the wall clock counts only across a reboot."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.now = self.wall = self.utc = 0
        self.orders: dict[str, Order] = {}
        self.paused: set[str] = set()
        self.alerts: set[tuple[str, str]] = set()
        self.restored = False

    # Time and the gateway's own life

    def advance(self, delay: int) -> None:
        self.now += delay
        self.set_wall(delay)

    def set_wall(self, step: int) -> None:
        self.wall += step
        self.utc = max(self.utc, self.wall)

    def sweep(self) -> None:
        for order in self.orders.values():
            self._judge(order)

    def reboot(self, down: int) -> None:
        """Elapsed time is lost, so the wall clock judges; where it has gone back, every lease is over."""
        gone_back = self.wall + down < self.utc
        active = [order for order in self.orders.values() if order.is_active]
        self.now = max(self.now, *(order.held.permit_until or 0 for order in active), 0)
        self.set_wall(down)
        for order in active:
            order.held.deadline = self.now + order.held.expires_utc - self.wall
            if gone_back or order.held.deadline <= self.now:
                self._turn_stale(order)

    def restore(self) -> None:
        """After a restore every open task counts as permitted, to nobody knows whom."""
        self.paused.add("")
        self.restored = True
        for order in self.orders.values():
            if order.status in ENDED:
                continue
            if order.is_active:
                order.held.ended = self.now
            order.leases.append(Held(NOBODY, len(order.leases) + 1, self.now, 0, 0))
            order.held.permit_until = order.held.ended = self.now
            order.status = S.STALE
            self._alert(AlertKind.TASK_STALE, order)

    def _judge(self, order: Order) -> None:
        """Expiry is judged at use: it holds until one tick before its deadline."""
        if order.is_active and self.now >= order.held.deadline:
            self._turn_stale(order)

    def _turn_stale(self, order: Order) -> None:
        order.status, order.held.ended = S.STALE, self.now
        self._alert(AlertKind.TASK_STALE, order)

    def _alert(self, kind: AlertKind, order: Order) -> None:
        self.alerts.add((kind, order.task_id))

    # Upstreams

    def submit(self, task_id: str, site: str, intent_json: str) -> Filed:
        """The intents of these tests are equal as JSON values exactly if they are without their blanks."""
        created = task_id not in self.orders
        order = self.orders.setdefault(task_id, Order(task_id, site, intent_json))
        return Filed(created, order.status, order.intent_json.replace(" ", "") == intent_json.replace(" ", ""))

    def cancel(self, task_id: str) -> TaskStatus | Refused:
        order = self.orders.get(task_id)
        if order is None:
            return refused(Reason.TASK_NOT_FOUND)
        if order.leases or order.status not in (S.QUEUED, S.FAILED):
            return refused(Reason.STATUS_CONFLICT)
        if order.status is S.QUEUED and order.placement is Placement.CERTAIN:
            return refused(Reason.STATUS_CONFLICT)
        order.status = S.FAILED
        return order.status

    # Workers

    def is_free(self, site: str) -> bool:
        return not any(order.is_active and (self.scope == "global" or order.site == site)
                       for order in self.orders.values())  # fmt: skip

    def waiting_for(self, process: Process) -> list[Order]:
        """What this very process was given and has not acknowledged."""
        return [
            order for order in self.orders.values()
            if process.session is not None and order.waits_for_acknowledgement and order.held.process == process
        ]  # fmt: skip

    def lease(self, process: Process, sites: tuple[str, ...]) -> tuple[Given, Held] | None:
        for order in self.waiting_for(process):
            self._judge(order)
            if order.is_active and order.site not in sites:
                return None
            if order.is_active:
                order.held.streams += 1
                return self._again(order)
        self.sweep()
        if "" in self.paused:
            return None
        for order in self.orders.values():
            may_go = order.site in sites and order.site not in self.paused and self.is_free(order.site)
            if order.status is S.QUEUED and may_go:
                given = self._hand_over(order, process)
                order.held.streams = 1
                return given
        return None

    def reclaim(self, process: Process, task_id: str) -> tuple[Given, Held] | Refused:
        self.sweep()
        order = self.orders.get(task_id)
        if order is None:
            return refused(Reason.TASK_NOT_FOUND)
        if order.status is S.LEASED and order in self.waiting_for(process):
            return self._again(order)
        if order.status is not S.STALE:
            return refused(Reason.STATUS_CONFLICT)
        if not self.is_free(order.site):
            return refused(Reason.ANOTHER_TASK_ACTIVE)
        self.alerts.discard((AlertKind.TASK_STALE, task_id))
        return self._hand_over(order, process)

    def _again(self, order: Order) -> tuple[Given, Held]:
        order.held.given += 1
        return self._given(order)

    def _hand_over(self, order: Order, process: Process) -> tuple[Given, Held]:
        lives = TTL if process.session is None else ACKNOWLEDGE
        number = len(order.leases) + 1
        order.leases.append(Held(process, number, self.now, self.now + lives, self.utc + lives))
        order.status = S.LEASED
        return self._given(order)

    def _given(self, order: Order) -> tuple[Given, Held]:
        others = [other for other in self.orders.values() if other is not order and other.site == order.site]
        numbers = frozenset(number for other in others for number in other.numbers)
        incomplete = self.restored or any(other.in_doubt for other in others)
        return Given(order.task_id, order.held.number, order.latest, order.intent_json, numbers, incomplete), order.held

    def give_back(self, order: Order) -> bool:
        """A stream's answer did not reach its transport. The lease is undone if no other answer brought it."""
        held = order.held
        held.streams -= 1
        if order.status is not S.LEASED or not order.waits_for_acknowledgement:
            return False
        held.given -= 1
        if held.given > 0:
            return False
        order.leases.pop()
        order.status = S.QUEUED
        return True

    def renew(self, holder: Holder) -> int | Refused:
        order = self._live(holder)
        if isinstance(order, Refused):
            return order
        order.held.acknowledged = True
        order.held.deadline, order.held.expires_utc = self.now + TTL, self.utc + TTL
        return self.now - order.held.began

    def _live(self, holder: Holder) -> Order | Refused:
        order = self.orders.get(holder.task_id)
        if order is None:
            return refused(Reason.TASK_NOT_FOUND)
        self._judge(order)
        return order if order.is_active and order.is_held_by(holder) else refused(Reason.LEASE_INVALID)

    def report(self, holder: Holder, told: Told) -> tuple[TaskStatus, bool] | Refused:
        order = self.orders.get(holder.task_id)
        if order is None:
            return refused(Reason.TASK_NOT_FOUND)
        self._judge(order)
        state = told.state or order.latest or OrderState.CREATED
        ends_as = (told.ends_as or BY_STATE.get(state, S.NEEDS_HUMAN)) if told.terminal else None
        if not order.is_held_by(holder) or not (order.is_active or order.status in ENDED):
            return self._keep_late(order, holder, told, state, Reason.LEASE_INVALID)
        repeats_end = told.terminal and order.end == (state, ends_as)
        if told.terminal and not order.is_active and not repeats_end and (order.end or ends_as is not order.status):
            self._alert(AlertKind.CONTRADICTING_REPORT, order)
            return self._keep_late(order, holder, told, state, Reason.STATUS_CONFLICT)
        is_new = state not in order.rows
        order.known |= self._tells(told)
        self._mirror(order, state, told)
        if not order.is_active:
            cancelled = order.status is S.SUCCEEDED and state is OrderState.CANCELLED
            placed = order.status is S.FAILED and state is not OrderState.CANCELLED and self._tells(told)
            if not repeats_end and (cancelled or placed):
                self._alert(AlertKind.CONTRADICTING_REPORT, order)
        elif ends_as is None:
            order.status = S.RUNNING
        else:
            order.status, order.end, order.held.ended = ends_as, (state, ends_as), self.now
            if ends_as is S.NEEDS_HUMAN:
                self._alert(AlertKind.TASK_NEEDS_HUMAN, order)
            doubtful = state is not OrderState.CANCELLED and order.placement is not Placement.IMPOSSIBLE
            if ends_as is S.FAILED and doubtful:
                self._alert(AlertKind.FAILED_IN_DOUBT, order)
        return order.status, is_new

    def _tells(self, told: Told) -> bool:
        return told.state not in (None, *NOTHING_PLACED) or "site_order_id" in dict(told.facts)

    def _keep_late(self, order: Order, holder: Holder, told: Told, state: OrderState, reason: Reason) -> Refused:
        """Late truth is kept: in the history, as an alert, and in what is known of an order. A repeat is not news."""
        order.known |= self._tells(told)
        self._note_number(order, dict(told.facts).get("site_order_id"))
        kept = (holder.worker, told, state, reason)
        if kept not in order.late:
            order.late.add(kept)
            self._alert(AlertKind.LATE_REPORT, order)
        return refused(reason, late=True)

    def _mirror(self, order: Order, state: OrderState, told: Told) -> None:
        """One row a state: what is absent never erases, and what is older only fills in."""
        age = (order.held.number, told.sequence or 0)
        is_new = state not in order.rows
        row, row_age = order.rows.setdefault(state, {}), order.ages.get(state, (0, 0))
        newer = told.sequence is None or age >= row_age
        for name, value in told.facts:
            if newer or name not in row:
                row[name] = value
        order.ages[state] = max(age, row_age)
        if is_new if told.sequence is None else age > order.latest_age:
            order.latest = state
        order.latest_age = max(age, order.latest_age)
        order.stated_rows.discard(state)
        self._note_number(order, dict(told.facts).get("site_order_id"))

    def _note_number(self, order: Order, number: str | None, *, by_person: bool = False) -> None:
        if number is None:
            return
        if by_person and number not in order.numbers:
            order.stated_number = number
        if not by_person and number == order.stated_number:
            order.stated_number = None
        order.numbers.add(number)
        if any(number in other.numbers and other.site == order.site and other is not order
               for other in self.orders.values()):  # fmt: skip
            self.alerts.add((AlertKind.SITE_ORDER_ID_CONFLICT, f"{order.site}/{number}"))
        if len(order.numbers) > 1:
            self._alert(AlertKind.SITE_ORDER_ID_CONFLICT, order)

    def permit(self, holder: Holder, journal: str, attests: bool, look: Look | None) -> int | Refused:
        order = self._live(holder)
        if isinstance(order, Refused):
            return order
        held = order.held
        broken = set()
        if not held.acknowledged:
            broken.add(Reason.LEASE_NOT_ACKNOWLEDGED)
        if held.process.journal != journal:
            broken.add(Reason.PERMIT_OTHER_JOURNAL)
        if order.known:
            broken.add(Reason.PERMIT_ORDER_KNOWN)
        if held.permit_until is None:
            broken |= self._a_new_permit_breaks(order, journal, attests, look)
        elif self.now >= held.permit_until:
            broken.add(Reason.PERMIT_EXPIRED)
        if broken:
            return refused(*broken)
        if held.permit_until is None:
            held.permit_until = self.now + PERMIT_TTL
        return held.permit_until - self.now

    def _a_new_permit_breaks(self, order: Order, journal: str, attests: bool, look: Look | None) -> set[Reason]:
        held, broken = order.held, set[Reason]()
        if {"", order.site} & self.paused:
            broken.add(Reason.DISPATCH_PAUSED)
        proves = look is not None and look.verdict is Verdict.NOT_ORDERED and look.covered and look.evidence is not None
        if held.number > 1 and not (proves and look is not None and 0 <= look.begun <= self.now - held.began):
            broken.add(Reason.PERMIT_NOT_VERIFIED)
        earlier = [lease for lease in order.leases[:-1] if lease.may_have_clicked]
        if earlier:
            settled = order.settled(earlier)
            if any(lease.process.journal != journal for lease in earlier):
                broken.add(Reason.PERMIT_OTHER_JOURNAL)
            if not attests:
                broken.add(Reason.PERMIT_NOT_ATTESTED)
            if self.now < settled or look is None or held.began + look.begun < settled:
                broken.add(Reason.PERMIT_NOT_SETTLED)
        return broken

    # The person

    def decide(self, decision: str, task_id: str) -> TaskStatus | Refused:
        order = self.orders.get(task_id)
        if order is None:
            return refused(Reason.TASK_NOT_FOUND)
        self._judge(order)
        if decision == "expire_now" and order.is_active:
            self._turn_stale(order)
        elif decision == "requeue" and (
            order.status is S.STALE or (order.status is S.NEEDS_HUMAN and order.placement is Placement.IMPOSSIBLE)
        ):
            order.status, order.end = S.QUEUED, None
            self.alerts -= {(AlertKind.TASK_STALE, task_id), (AlertKind.TASK_NEEDS_HUMAN, task_id)}
        elif decision == "withdraw" and order.status is S.QUEUED and order.leases:
            order.status = S.STALE
            self._alert(AlertKind.TASK_STALE, order)
        else:
            return refused(Reason.STATUS_CONFLICT)
        return order.status

    def resolve(
        self, task_id: str, outcome: TaskStatus, state: OrderState | None, number: str | None, although: bool
    ) -> TaskStatus | Refused:
        order = self.orders.get(task_id)
        if order is None:
            return refused(Reason.TASK_NOT_FOUND)
        self._judge(order)
        broken = self._a_statement_breaks(order, outcome, state, number)
        impossible = order.placement_by_workers is Placement.IMPOSSIBLE
        if outcome is S.SUCCEEDED and order.placement is Placement.IMPOSSIBLE and number is None and not although:
            broken.add(Reason.INVALID_FIELD)
        if outcome is S.FAILED and not impossible:
            clicking = [lease for lease in order.leases if lease.may_have_clicked] or order.leases
            if clicking and self.now < order.settled(clicking):
                broken.add(Reason.PERMIT_NOT_SETTLED)
        if broken:
            return refused(*broken)
        if state is None and number is not None:
            state = OrderState.ORDERED if order.latest in (None, *NOTHING_PLACED) else order.latest
        placed = outcome is S.SUCCEEDED or state not in (None, *NOTHING_PLACED)
        self._state(order, state, number, placed=placed)
        order.status, order.resolved, order.stated = outcome, True, placed
        self._note_number(order, number, by_person=True)
        self.alerts = {(kind, subject) for kind, subject in self.alerts if subject != task_id}
        return outcome

    def _a_statement_breaks(
        self, order: Order, outcome: TaskStatus, state: OrderState | None, number: str | None
    ) -> set[Reason]:
        broken = set()
        if order.status not in (S.STALE, S.NEEDS_HUMAN, S.FAILED) and not order.resolved:
            broken.add(Reason.STATUS_CONFLICT)
        if order.status is outcome and not order.resolved and order.placement is Placement.IMPOSSIBLE:
            broken.add(Reason.STATUS_CONFLICT)
        nothing_new = state in (None, order.latest) and number in (None, *order.numbers)
        if order.status is outcome and order.resolved and nothing_new:
            broken.add(Reason.STATUS_CONFLICT)
        of_workers = order.numbers - {order.stated_number}
        if number is not None and of_workers and number not in of_workers:
            broken.add(Reason.INVALID_FIELD)
        return broken

    def _state(self, order: Order, state: OrderState | None, number: str | None, *, placed: bool) -> None:
        """A person's statement stands where reports are and changes none of them, only what a person had stated."""
        stated = order.stated_number
        if stated is not None and stated != number and (number is not None or not placed):
            self._take_back(order, stated)
        if state is None and placed:
            return
        for taken_back in order.stated_rows:
            del order.rows[taken_back]
        order.stated_rows.clear()
        if state is None:
            order.latest = order.latest_of_workers if order.resolved else order.latest
            return
        if state not in order.rows:
            order.rows[state] = {"detail": f"stated by a person: {REASON}"}
            order.ages[state] = (len(order.leases), order.latest_age[1])
            order.stated_rows.add(state)
        if (number or order.stated_number) is not None:
            order.rows[state].setdefault("site_order_id", number or order.stated_number)
        order.latest = state

    def _take_back(self, order: Order, number: str) -> None:
        order.stated_number = None
        order.numbers.discard(number)
        for row in order.rows.values():
            if row.get("site_order_id") == number:
                del row["site_order_id"]
        others = [o for o in self.orders.values() if o is not order and o.site == order.site and number in o.numbers]
        if len(others) == 1:
            self.alerts.discard((AlertKind.SITE_ORDER_ID_CONFLICT, f"{order.site}/{number}"))

    def pause(self, site: str) -> frozenset[str]:
        self.paused.add(site)
        return frozenset(self.paused)

    def resume(self, site: str) -> frozenset[str]:
        self.paused.discard(site)
        return frozenset(self.paused)

    # What can be read

    def view(self) -> View:
        tasks = tuple(
            Seen(
                task_id=order.task_id,
                site=order.site,
                intent_json=order.intent_json,
                status=order.status,
                owner=order.held.process.worker if order.is_active else None,
                lease_count=len(order.leases),
                latest=order.latest,
                placement=order.placement,
                permitted=any(lease.permit_until is not None for lease in order.leases),
                reports=tuple(
                    (state, tuple((name, row[name]) for name in FACTS if name in row))
                    for state, row in order.rows.items()
                ),
            )
            for order in reversed(self.orders.values())
        )
        late = sum(len(order.late) for order in self.orders.values())
        return View(tasks, frozenset(self.alerts), late)

    def active(self) -> list[Order]:
        return [order for order in self.orders.values() if order.is_active]
