"""Who sent a callback: against the library that the gateway signs with."""

from datetime import UTC, datetime

import pytest
from ordergateway.client import CallbackError, verify_callback
from standardwebhooks.webhooks import Webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
BODY = '{"type":"order.succeeded","timestamp":"2026-12-01T00:00:00Z","data":{"task_id":"煎茶-1"}}'.encode()
NOW = 1_796_000_000


def signed(secret: str = SECRET, body: bytes = BODY) -> dict[str, str]:
    signature = Webhook(secret).sign("cb_1", datetime.fromtimestamp(NOW, UTC), body.decode())
    return {"Webhook-Id": "cb_1", "webhook-timestamp": str(NOW), "WEBHOOK-SIGNATURE": signature}


def test_one_that_is_signed_is_read() -> None:
    callback = verify_callback(SECRET, signed(), BODY, now=NOW + 299.0)
    assert (callback.id, callback.type, callback.data["task_id"]) == ("cb_1", "order.succeeded", "煎茶-1")


def test_while_secrets_rotate_any_of_them_will_do() -> None:
    both = signed() | {"WEBHOOK-SIGNATURE": f"{signed(OTHER)['WEBHOOK-SIGNATURE']} {signed()['WEBHOOK-SIGNATURE']}"}
    for secrets in (SECRET, OTHER, [OTHER, SECRET]):
        assert verify_callback(secrets, both, BODY, now=NOW).id == "cb_1"


@pytest.mark.parametrize(
    ("headers", "body", "now", "why"),
    [
        pytest.param(signed(OTHER), BODY, NOW, "no signature fits", id="another-secret"),
        pytest.param(signed(), BODY + b" ", NOW, "no signature fits", id="another-body"),
        pytest.param(signed() | {"Webhook-Id": "cb_2"}, BODY, NOW, "no signature fits", id="another-id"),
        pytest.param(signed(), BODY, NOW + 301, "301 s old", id="old"),
        pytest.param(signed(), BODY, NOW - 301, "s old", id="ahead"),
        pytest.param({}, BODY, NOW, "headers", id="no-headers"),
        pytest.param(signed() | {"webhook-timestamp": "now"}, BODY, NOW, "headers", id="no-time"),
        pytest.param(signed() | {"WEBHOOK-SIGNATURE": "v2,é"}, BODY, NOW, "no signature fits", id="another-scheme"),
        pytest.param(signed() | {"WEBHOOK-SIGNATURE": "v1,é"}, BODY, NOW, "no signature fits", id="no-ascii"),
        pytest.param(signed(body=b"[]"), b"[]", NOW, "not that of a callback", id="no-callback"),
    ],
)
def test_anything_else_is_refused(headers: dict[str, str], body: bytes, now: float, why: str) -> None:
    with pytest.raises(CallbackError, match=why):
        verify_callback(SECRET, headers, body, now=now)


def test_a_secret_that_is_none_is_the_receiver_s_own_mistake() -> None:
    with pytest.raises(ValueError, match="whsec_"):
        verify_callback("not base64!", signed(), BODY, now=NOW)
