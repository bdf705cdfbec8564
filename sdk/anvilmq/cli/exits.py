"""Exit codes of the command line, and the one table that makes them of gRPC codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from anvilmq.errors import AnvilError

DONE: Final = 0
FAILED: Final = 1
"""The job that was waited for failed, a line was refused, or something broke."""
USAGE: Final = 2
NOT_FOUND: Final = 3
CONFLICT: Final = 4
"""It is there already, or the state of things does not allow it."""
UNREACHABLE: Final = 5
"""Nobody answers, or not in time."""
DENIED: Final = 6
REFUSED: Final = 7
"""For load or limits."""
INTERRUPTED: Final = 130

OF_CODE: Final[dict[int, int]] = {
    1: UNREACHABLE,  # CANCELLED: not by us, so by a connection that went away
    2: FAILED,  # UNKNOWN
    3: USAGE,  # INVALID_ARGUMENT
    4: UNREACHABLE,  # DEADLINE_EXCEEDED
    5: NOT_FOUND,
    6: CONFLICT,  # ALREADY_EXISTS
    7: DENIED,  # PERMISSION_DENIED
    8: REFUSED,  # RESOURCE_EXHAUSTED
    9: CONFLICT,  # FAILED_PRECONDITION
    10: CONFLICT,  # ABORTED
    11: USAGE,  # OUT_OF_RANGE
    12: CONFLICT,  # UNIMPLEMENTED: the request is well formed, this broker cannot do it
    13: FAILED,  # INTERNAL
    14: UNREACHABLE,  # UNAVAILABLE
    15: FAILED,  # DATA_LOSS
    16: DENIED,  # UNAUTHENTICATED
}

MEANINGS: Final[dict[int, str]] = {
    DONE: "done",
    FAILED: "failed: the job under `--wait`, a line that was refused",
    USAGE: "the command, or a value in it, is not valid",
    NOT_FOUND: "there is no such thing",
    CONFLICT: "it exists already, its state does not allow it, or this version cannot do it",
    UNREACHABLE: "the broker cannot be reached, or it took too long",
    DENIED: "the token is missing, not valid, or lacks a scope",
    REFUSED: "refused for load or limits; try again later",
    INTERRUPTED: "interrupted",
}


class UsageProblem(Exception):
    """A value on the command line is not valid. `where`: the flag or argument. The message says what to do."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(f"{where}: {message}" if where else message)


class Stopped(Exception):
    """The command ends with an exit code of its own, and a message that is not empty when there is more to say."""

    def __init__(self, exit_code: int, message: str = "") -> None:
        super().__init__(message)
        self.exit_code = exit_code


def code_of(error: AnvilError) -> int:
    """The exit code for an error of the SDK."""
    from anvilmq import errors

    match error:
        case errors.CallError():
            return OF_CODE.get(error.code, FAILED)
        case errors.WaitTimeout():
            return UNREACHABLE
        case errors.PayloadInvalid() | errors.SettingInvalid():
            return USAGE
        case _:
            return FAILED
