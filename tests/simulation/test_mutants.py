"""A safeguard whose absence nobody notices is not tested: each is taken out, and the simulation must find it out."""

import pytest

from tests.simulation.mutants.hunt import MUTANTS
from tests.simulation.mutants.worker import payment_repeated
from tests.simulation.run import simulate

# The seed that finds it out: how many runs it took from seed 1 on (`make mutants`). Where code has changed and a seed
# has become another run, it is hunted again.
FOUND_BY = {
    "no_token_check": 155,
    "settle_counted_from_the_permit": 9,
    "no_settle_time": 9,
    "second_permit_to_another_journal": 39,
    "automatic_requeue": 1,
    "expiry_only_by_the_sweep": 16,
    "refusal_rolled_back_with_its_record": 13,
    "null_erases": 8,
    "undo_without_the_fence": 44,
    "order_of_arrival": 87,
    "unknown_numbers_ignored": 223,
    "no_pause": 20,
    "a_lease_for_everybody": 18,
    "slots_not_unique": 9,
    "a_reboot_goes_unnoticed": 15,
    "answered_before_the_commit": 12,
    "stale_without_an_alert": 1,
    "needs_human_without_an_alert": 1,
    "resolved_before_it_is_settled": 8,
    "no_permit": 1,
    "permit_without_expiry": 38,
    "no_look_when_the_connection_stands": 215,
    "permit_counted_from_the_answer": 271,
    "no_verification": 4,
    "false_attestation": 32,
    "click_record_after_the_click": 1,
    "submit_resent_by_the_client": 173,
    "failed_after_a_click_record": 32,
    "recovered_run_pays": 4,
    "cart_not_compared": 37,
    "confirmation_not_compared": 98,
    "payment_not_recorded": 2,
    "no_amount_guard": 67,
    "wall_clock_lease_guard": 7,
    "lease_counted_from_the_answer": 62,
    "lost_lease_ignored": 7,
    "no_acknowledgement": 1,
    "report_before_evidence": 1,
    "a_report_is_sent_once": 15,
    "delivery_gives_up": 55,
    "taken_wish_is_forgotten": 411,
}


@pytest.mark.extended
@pytest.mark.parametrize("name", MUTANTS)
def test_a_missing_safeguard_is_found_out(name: str) -> None:
    with MUTANTS[name]():
        result = simulate(FOUND_BY[name])
    assert result.violations, "the run did not notice that the safeguard was missing; hunt its seed: make mutants"


def test_the_payment_record_alone_keeps_a_second_payment_out() -> None:
    with payment_repeated():
        result = simulate(FOUND_BY["payment_not_recorded"])
    assert not result.violations
    assert result.counts["payments"]


@pytest.mark.parametrize("name", ["no_permit", "null_erases", "no_acknowledgement"])
def test_the_same_run_is_clean_with_the_safeguard(name: str) -> None:
    assert not simulate(FOUND_BY[name]).violations
