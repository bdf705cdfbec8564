"""The numbered rules of the guarantees, and the mark that ties a test to one of them."""

from typing import Final

import pytest

_RULES_IN_SECTION: Final = {1: 13, 2: 3, 3: 7, 4: 1, 5: 9, 6: 8}

RULES: Final[tuple[str, ...]] = (
    *(f"{section}.{number}" for section, count in _RULES_IN_SECTION.items() for number in range(1, count + 1)),
    "7",  # errors
    "8",  # durability
)


def rule(number: str) -> pytest.MarkDecorator:
    """Marks a test as the one that fails when the rule of this number is dropped. Several may stand above one test."""
    if number not in RULES:
        raise ValueError(f"there is no rule {number!r}; the rules are listed in {__name__}")
    return pytest.mark.rule(number)
