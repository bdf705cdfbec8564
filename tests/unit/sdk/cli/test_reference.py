"""The page about the command line is what its own help says."""

from scripts import cli_reference


def test_the_reference_is_up_to_date() -> None:
    assert cli_reference.TARGET.read_text(encoding="utf-8") == cli_reference.reference(), (
        "remedy: python scripts/cli_reference.py"
    )
