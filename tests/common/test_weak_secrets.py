"""Tokens that can be guessed are warned of, by the setting's name, and never shown."""

import pytest
from pydantic import SecretStr

from common.weak_secrets import is_weak
from gateway.settings import Settings
from worker.settings import WorkerSettings

GOOD = "q7Zt0mWv3Lx9RbNc"


@pytest.mark.parametrize("weak", ["x", GOOD[:-1], "a" * 40, "abcabcabcabcabcabcabcabc", "1234567123456712345671234567"])
def test_short_and_repetitive_ones_are_weak(weak: str) -> None:
    assert is_weak(weak)


@pytest.mark.parametrize("good", [GOOD, "a-token-for-the-tour", "correct-horse-battery"])
def test_others_are_not(good: str) -> None:
    assert not is_weak(good)


@pytest.mark.parametrize("field", ["api_token", "upstream_token", "worker_token", "operator_token", "viewer_token"])
def test_the_gateway_warns_of_each_list_that_holds_a_weak_one(field: str) -> None:
    def warnings(*tokens: str) -> list[str]:
        settings = Settings(_env_file=None, **{field: tokens})  # type: ignore[call-arg,arg-type]
        return [line for line in settings.unusual() if "can be guessed" in line]

    assert warnings(GOOD, f"alice={GOOD}") == []
    (line,) = warnings(GOOD, "#")
    assert line.startswith(f"RAKUTEN_{field.upper()}: ")
    assert "#" not in line
    assert len(warnings("alice=" + "a" * 16)) == 1


@pytest.mark.parametrize("field", ["worker_token", "api_token", "scraper_token"])
def test_the_worker_warns_of_what_it_sends(field: str) -> None:
    def warnings(token: str) -> list[str]:
        return WorkerSettings(_env_file=None, **{field: SecretStr(token)}).unusual()  # type: ignore[call-arg,arg-type]

    assert warnings(GOOD) == []
    (line,) = warnings("#")
    assert line.startswith(f"RAKUTEN_{field.upper()}: ")
    assert "#" not in line
