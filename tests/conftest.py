"""What holds for every test: a run that skipped something is no proof, so it is red."""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says which tests were skipped and what to do."""
    if skipped := terminalreporter.stats.get("skipped"):
        terminalreporter.section("skipped tests make a run red", red=True)
        terminalreporter.line(f"{len(skipped)} skipped: make what is missing a failure, or leave the rung out")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Turns the exit status of a run with a skipped test red."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if exitstatus == pytest.ExitCode.OK and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
