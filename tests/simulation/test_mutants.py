"""A safeguard whose absence nobody notices is not tested: each is taken out, and the simulation must find it out."""

import pytest

from tests.simulation.mutants.hunt import MOST_RUNS, MUTANTS, hunt
from tests.simulation.mutants.registry import WORLDS
from tests.simulation.mutants.worker import payment_repeated
from tests.simulation.run import simulate

# The seed that finds it out: how many runs it took from seed 1 on (`make mutants`). Where code has changed and a seed
# has become another run, the test hunts anew, as far as a mutant may survive; `make mutants` tells the seeds of now.
FOUND_BY = {
    "no_token_check": 3,
    "settle_counted_from_the_permit": 7,
    "no_settle_time": 7,
    "second_permit_to_another_journal": 7,
    "automatic_requeue": 2,
    "past_the_table": 2,
    "row_count_ignored": 2,
    "expiry_only_by_the_sweep": 17,
    "refusal_rolled_back_with_its_record": 3,
    "null_erases": 1,
    "undo_without_the_fence": 17,
    "order_of_arrival": 11,
    "unknown_numbers_ignored": 21,
    "no_pause": 16,
    "a_lease_for_everybody": 7,
    "slots_not_unique": 4,
    "a_reboot_goes_unnoticed": 77,
    "answered_before_the_commit": 17,
    "stale_without_an_alert": 2,
    "needs_human_without_an_alert": 1,
    "resolved_before_it_is_settled": 1,
    "second_permit_never_given": 7,
    "recovered_task_never_permitted": 2,
    "look_before_the_settle_time": 22,
    "permit_though_an_order_is_known": 31,
    "undo_without_token": 17,
    "undo_of_an_acknowledged_lease": 17,
    "undo_though_given_again": 17,
    "a_caller_that_has_gone_is_served": 17,
    "unknown_commit_called_undone": 13,
    "late_report_makes_no_order_known": 25,
    "rest_lease_cannot_have_clicked": 31,
    "restored_without_a_mark": 25,
    "click_though_no_permit_could_be_asked": 17,
    "click_record_not_awaited": 30,
    "one_click_a_lease": 65,
    "click_record_passed_over": 65,
    "never_clicked_whatever_the_journal_says": 21,
    "click_broken_off_by_a_stop": 30,
    "no_new_confirmation_after_a_wait": 7,
    "cart_not_emptied": 1,
    "evidence_written_over": 1,
    "no_margin_in_the_lease_guard": 3,
    "ended_task_run_again": 24,
    "recovered_judged_by_lease_count_alone": 26,
    "lease_taken_twice": 29,
    "placed_but_not_found_goes_on": 28,
    "first_page_only": 2,
    "a_failing_list_is_empty": 9,
    "others_numbers_not_left_out": 7,
    "others_numbers_by_suffix": 10,
    "own_numbers_of_others_forgotten": 26,
    "first_of_several_matches": 23,
    "no_permit": 1,
    "permit_without_expiry": 1,
    "no_look_when_the_connection_stands": 1,
    "permit_counted_from_the_answer": 38,
    "no_verification": 2,
    "false_attestation": 21,
    "click_record_after_the_click": 1,
    "submit_resent_by_the_client": 10,
    "failed_after_a_click_record": 1,
    "recovered_run_pays": 2,
    "cart_not_compared": 32,
    "confirmation_not_compared": 12,
    "payment_not_recorded": 3,
    "no_amount_guard": 13,
    "wall_clock_lease_guard": 5,
    "lease_counted_from_the_answer": 3,
    "lost_lease_ignored": 3,
    "no_acknowledgement": 1,
    "report_before_evidence": 1,
    "a_report_is_sent_once": 3,
    "delivery_gives_up": 14,
    "taken_reclaim_request_is_forgotten": 15,
    "handed_another_target": 2,
    "reclaimed_for_another_account": 1,
    "slot_of_another_account": 3,
    "a_slot_an_account_whatever_the_scope": 1,
    "session_of_another_account": 1,
    "lock_not_taken": 1,
    "lease_judged_on_the_gateways_own_clock": 3,
    "permit_judged_on_the_gateways_own_clock": 26,
    "the_database_s_clock_alone": 3,
    "unknown_commit_told_as_undone": 12,
    "unknown_commit_told_as_done": 12,
    "hints_without_a_poll": 17,
    "sweeps_on_every_gateway": 1,
    "the_term_of_another_is_taken": 1,
    "superseded_at_its_own_gateway_only": 4,
    "cap_ignored": 25,
    "cap_compared_with_the_items": 44,
    "terms_not_required": 13,
    "dry_run_permitted": 7,
    "cancel_that_loses_to_a_later_permit": 17,
    "cancel_taken_after_the_permit": 6,
    "not_after_judged_only_by_the_sweep": 11,
    "budget_ignored": 6,
    "nothing_reserved": 2,
    "budget_read_outside_the_transaction": 9,
    "reservation_not_released": 6,
    "reservation_released_twice": 16,
    "reservation_released_in_doubt": 6,
    "second_permit_counted_twice": 186,
    "budget_day_begins_in_utc": 8,
    "settled_with_what_the_items_cost": 2,
    "approval_reused": 32,
    "approval_of_another_task": 10,
    "own_approval_accepted": 1,
    "expired_approval_accepted": 1,
    "approved_total_ignored": 18,
}


@pytest.mark.extended
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_missing_safeguard_is_found_out(name: str) -> None:
    with MUTANTS[name]():
        result = simulate(FOUND_BY[name], WORLDS[name])
    if not result.violations:
        assert hunt(1, frozenset(), name).runs, f"{MOST_RUNS} runs did not notice that the safeguard was missing"


def test_the_payment_record_alone_keeps_a_second_payment_out() -> None:
    with payment_repeated():
        result = simulate(FOUND_BY["payment_not_recorded"])
    assert not result.violations
    assert result.counts["payments"]


@pytest.mark.parametrize("name", ["no_permit", "null_erases", "no_acknowledgement", "handed_another_target"])
def test_the_same_run_is_clean_with_the_safeguard(name: str) -> None:
    assert not simulate(FOUND_BY[name], WORLDS[name]).violations
