"""Secrets that can be guessed, of which both programs warn at their start."""

from typing import Final

SHORTEST: Final = 16
FEWEST_DIFFERENT: Final = 8

ADVICE: Final = (
    f"a token of fewer than {SHORTEST} characters, or of fewer than {FEWEST_DIFFERENT} different ones, can be guessed; "
    "make one with: openssl rand -base64 32"
)


def is_weak(secret: str) -> bool:
    """Tell whether a secret is short, or little else than repetition."""
    return len(secret) < SHORTEST or len(set(secret)) < FEWEST_DIFFERENT
