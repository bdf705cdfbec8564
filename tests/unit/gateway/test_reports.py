"""Progress and logs on a stream: above ten a second for a job only the newest are kept."""

from __future__ import annotations

from typing import Any

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.gateway.reports import Reports
from tests.support.clock import START_MS
from tests.support.rules import rule
from tests.unit.gateway.bundle import Bundle, turns


def report(text: str | None = None, *, token: str = "t", lines: list[str] | None = None) -> commands.Report:
    made = [commands.LogLine(1, "info", line) for line in lines or []]
    return commands.Report(commands.LeaseRef(7, START_MS, token), text, made)


def reports(bundle: Bundle, lost: list[Any]) -> Reports:
    return Reports(bundle.context, lost.append)


@rule("1.8")
async def test_the_newest_progress_of_a_busy_job_is_sent_when_the_second_is_over() -> None:
    bundle, lost = Bundle(), []  # type: ignore[var-annotated]
    sender = reports(bundle, lost)
    for number in range(25):
        sender.put(report(str(number)))
    sender.put(report("other", token="u"))
    await turns()
    assert [each.progress_json for each in bundle.broker.asked] == [*map(str, range(10)), "other"]
    bundle.timers.advance(1_000)
    await turns()
    assert bundle.broker.asked[-1].progress_json == "24"
    bundle.timers.advance(5_000)
    await turns()
    assert len(bundle.broker.asked) == 12
    await sender.close()


async def test_progress_and_the_newest_lines_are_held_together() -> None:
    bundle = Bundle()
    sender = reports(bundle, [])
    for _ in range(10):
        sender.put(report("0"))
    sender.put(report("1"))
    sender.put(report(lines=[f"line {number}" for number in range(60)]))
    sender.put(report(lines=[f"line {number}" for number in range(60, 120)]))
    await sender.close()
    held = bundle.broker.asked[-1]
    assert held.progress_json == "1"
    assert [line.line for line in held.lines] == [f"line {number}" for number in range(20, 120)]


async def test_what_is_held_of_an_attempt_goes_before_its_settlement() -> None:
    bundle = Bundle()
    sender = reports(bundle, [])
    for number in range(12):
        sender.put(report(str(number)))
        sender.put(report(str(number), token="u"))
    sender.settling([commands.Settlement(7, START_MS, "t", 1)])
    await turns()
    assert [each.progress_json for each in bundle.broker.asked if each.lease.token == "t"][-1] == "11"
    assert [each.progress_json for each in bundle.broker.asked if each.lease.token == "u"][-1] == "9"
    await sender.close()


async def test_a_dead_token_comes_back_as_an_interrupt() -> None:
    bundle, lost = Bundle(), []  # type: ignore[var-annotated]
    bundle.broker.answers[commands.Report] = Refused("LEASE_LOST", "gone")
    sender = reports(bundle, lost)
    sender.put(report("1"))
    await turns()
    assert lost == [commands.Interrupt(7, START_MS, "t", 2)]
    bundle.broker.answers[commands.Report] = Refused("STORAGE_FULL", "full")
    sender.put(report("1"))
    await sender.close()
    assert len(lost) == 1
