"""Errors of the wire as classes."""

import copy
import pickle
from datetime import timedelta

import pytest
from google.rpc import error_details_pb2, status_pb2

from anvilmq import errors
from anvilmq_proto.v1 import types_pb2 as types
from tests.support.rules import rule


def status(code: int, reason: str = "", *, retry_s: int | None = None, **metadata: str) -> status_pb2.Status:
    """A status as the broker gives it."""
    made = status_pb2.Status(code=code, message="what happened")
    if reason:
        made.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason, domain="anvilmq.io", metadata=metadata))
    if retry_s is not None:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.seconds = retry_s
        made.details.add().Pack(retry)
    return made


@rule("7")
def test_a_reason_one_catches_has_a_class_below_that_of_its_code() -> None:
    error = errors.from_status(status(9, "LEASE_LOST", job_id="1", state="active"))
    assert type(error) is errors.LeaseLost
    assert isinstance(error, errors.FailedPrecondition)
    assert (error.reason, error.metadata) == ("LEASE_LOST", {"job_id": "1", "state": "active"})
    assert str(error) == "LEASE_LOST: what happened"


def test_an_unknown_reason_gives_the_class_of_its_code() -> None:
    error = errors.from_status(status(5, "COMET_NOT_FOUND"))
    assert type(error) is errors.NotFound
    assert error.reason == "COMET_NOT_FOUND"


def test_a_known_reason_under_another_code_keeps_the_code() -> None:
    assert type(errors.from_status(status(14, "QUEUE_FULL"))) is errors.Unavailable


def test_an_unknown_code_is_unknown() -> None:
    assert type(errors.from_status(status(99))) is errors.Unknown


@pytest.mark.parametrize("code", range(1, 17))
def test_every_code_has_a_class(code: int) -> None:
    assert errors.from_code(code, "").code == code


def test_fields_say_what_is_wrong_with_what() -> None:
    made = status(3, "INVALID_FIELD", field="job.priority")
    made.details.add().Pack(
        error_details_pb2.BadRequest(
            field_violations=[error_details_pb2.BadRequest.FieldViolation(field="job.priority", description="too low")]
        )
    )
    assert errors.from_status(made).fields == {"job.priority": "too low"}


def test_retry_after_is_a_duration_or_nothing() -> None:
    assert errors.from_status(status(8, "OVERLOADED", retry_s=2)).retry_after == timedelta(seconds=2)
    assert errors.from_status(status(8, "OVERLOADED", retry_s=0)).retry_after == timedelta(0)
    assert errors.from_status(status(8, "OVERLOADED")).retry_after is None


def test_the_error_of_an_item_is_that_of_a_call_of_its_own() -> None:
    item = types.ItemError(
        index=7, code=8, reason="QUEUE_FULL", message="full", field="queue", metadata={"queue": "a"}, retry_after_ms=250
    )
    error = errors.from_item_error(item)
    assert type(error) is errors.QueueFull
    assert error.fields == {"queue": "full"}
    assert error.retry_after == timedelta(milliseconds=250)


def test_the_index_of_a_batch_is_a_number() -> None:
    assert errors.from_status(status(3, "INVALID_FIELD", index="12")).index == 12
    assert errors.from_status(status(3, "INVALID_FIELD")).index is None


def test_a_class_without_a_message_says_what_its_docstring_says() -> None:
    assert str(errors.LeaseLost()).startswith("LEASE_LOST: The lease is no longer held")
    assert "fork" in str(errors.UsedAfterFork())


@pytest.mark.parametrize(
    "error",
    [
        errors.QueueFull("full", metadata={"queue": "a"}, retry_after=timedelta(seconds=1)),
        errors.Unavailable("away", outcome="not_sent"),
        errors.PayloadInvalid("$.a", "is no int"),
        errors.SettingInvalid("ANVILMQ_URL", "is wrong"),
        errors.JobFailed("failed", job_id="1", finish_reason="stalled", attempts=2, error_type="ValueError"),
    ],
)
def test_errors_survive_a_copy_and_another_process(error: errors.AnvilError) -> None:
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert vars(other) == vars(error)


def test_what_is_not_built_is_named() -> None:
    error = errors.not_built("Job.children")
    assert (error.reason, error.code) == ("FEATURE_NOT_BUILT", 12)
    assert "Job.children" in str(error)
