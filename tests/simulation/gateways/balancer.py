"""What stands in front of several gateways: each client is led to one, and now and then to another."""

import random
from collections.abc import Sequence

from tests.simulation.wire import Server


class Balancer(Server):
    """Of one client. `moves`: how likely a call goes to another gateway than the one before."""

    def __init__(self, servers: Sequence[Server], chance: random.Random, moves: float) -> None:
        super().__init__()
        self.moves = moves
        self._servers = servers
        self._chance = chance
        self._current = chance.choice(servers)

    @property
    def current(self) -> Server:
        """Where the last call went."""
        return self._current

    def pick(self) -> Server:
        """Where the next call goes: to one that is up, as far as can be told from outside."""
        if not self._current.is_up or self._chance.random() < self.moves:
            self._current = self._chance.choice([server for server in self._servers if server.is_up] or self._servers)
        return self._current
