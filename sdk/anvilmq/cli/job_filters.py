"""Which jobs a command concerns: flags to a JobFilter, and the pages of what it matches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict

import typer

from anvilmq.cli import times, values
from anvilmq.cli.exits import UsageProblem

if TYPE_CHECKING:
    from anvilmq_proto.v1.job_service_pb2 import JobFilter

_TERMINAL: Final = ("completed", "failed", "cancelled")


def _option(flag: str, metavar: str, text: str) -> Any:
    return typer.Option(flag, metavar=metavar, help=text, rich_help_panel="Filters (all must hold)", show_default=False)


class FilterFlags(TypedDict):
    """What matches a job. None: anything does."""

    queue: Annotated[str | None, _option("--queue", "QUEUE", "In that queue.")]
    state: Annotated[
        list[str] | None,
        _option(
            "--state",
            "STATE",
            "waiting, delayed, active, waiting_children, completed, failed or cancelled. May be repeated: any of them.",
        ),
    ]
    name: Annotated[str | None, _option("--name", "NAME", "Of that name.")]
    label: Annotated[list[str] | None, _option("--label", "KEY=VALUE", "With that label. May be repeated.")]
    scheduler: Annotated[str | None, _option("--scheduler", "NAME", "Made by that schedule.")]
    since: Annotated[str | None, _option("--since", "DURATION", "Added within that time, such as 2h.")]
    before: Annotated[str | None, _option("--before", "DURATION", "Added longer ago than that, such as 7d.")]
    finish_reason: Annotated[
        str | None, _option("--finish-reason", "REASON", "Ended for that reason, such as attempts_exhausted.")
    ]


def from_flags(flags: FilterFlags, now_ms: int) -> JobFilter:
    """The filter that flags describe. UsageProblem names the flag at fault."""
    from anvilmq_proto.v1 import types_pb2
    from anvilmq_proto.v1.job_service_pb2 import JobFilter

    def ago_ms(flag: str, text: str | None) -> int:
        return now_ms - times.duration_ms(flag, text) if text else 0

    reason = flags["finish_reason"]
    return JobFilter(
        queue=flags["queue"] or "",
        name=flags["name"] or "",
        scheduler=flags["scheduler"] or "",
        states=[values.enum_name("--state", types_pb2.JobState, state) for state in flags["state"] or ()],
        labels=values.pairs("--label", flags["label"]),
        created_after_at_ms=ago_ms("--since", flags["since"]),
        created_before_at_ms=ago_ms("--before", flags["before"]),
        finish_reason=values.enum_name("--finish-reason", types_pb2.FinishReason, reason) if reason else None,
    )


def is_empty(flags: FilterFlags) -> bool:
    """Whether the flags match every job."""
    return not any(flags.get(name) for name in FilterFlags.__annotations__)


def require_not_terminal(flags: FilterFlags) -> None:
    """Refuse states of jobs that have ended."""
    for state in flags["state"] or ():
        if state in _TERMINAL:
            raise UsageProblem("--state", f"a job that is {state} has ended; leave it out")
