"""An upstream's own labels of a task, kept as a JSON object in the order of its keys: equal texts for equal labels."""

import json
from collections.abc import Mapping
from typing import Final

from gateway.domain.json_writing import dump

NO_LABELS: Final = "{}"


def labels_text(labels: Mapping[str, str]) -> str:
    """Write labels that have been checked."""
    return dump({key: labels[key] for key in sorted(labels)})


def labels_of(text: str) -> dict[str, str]:
    """Read what `labels_text` wrote."""
    labels: dict[str, str] = json.loads(text)
    return labels
