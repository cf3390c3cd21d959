"""A sweep that is run once for all gateways is left to the one that leads."""

from collections.abc import Mapping

from gateway.sweeps.led_sweep import LedSweep


class Counted:
    """A sweep that counts its runs."""

    name = "counted"
    interval = 7.0

    def __init__(self) -> None:
        self.runs = 0

    async def run_once(self) -> Mapping[str, int]:
        self.runs += 1
        return {"runs": self.runs}


async def test_only_the_leader_sweeps() -> None:
    sweep, leads = Counted(), [True, False, True]

    async def lead() -> bool:
        return leads.pop(0)

    led = LedSweep(sweep, lead)
    assert (led.name, led.interval) == ("counted", 7.0)
    assert [await led.run_once() for _ in range(3)] == [{"runs": 1}, {}, {"runs": 2}]
