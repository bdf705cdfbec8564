"""Definitions: names, options, types, and what they refuse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import msgspec
import pytest

from anvilmq import Anvil, Job, errors, exponential, fixed
from anvilmq import options as job_options
from anvilmq_proto.v1 import types_pb2 as types
from tests.unit.sdk.fake_broker import World


class Resize(msgspec.Struct):
    """A payload."""

    url: str
    width: int = 800


async def resize(job: Job, args: Resize) -> str:
    """Makes it smaller."""
    return args.url


def wire_of(**given: Any) -> types.JobSpec:
    """What an add with these options sends."""
    job = Anvil().job(queue="images")(resize)
    return job.spec(Resize("u"), **given).wire


def test_a_definition_has_what_its_handler_says() -> None:
    app = Anvil()
    job = app.job(queue="images", no_retry_on=[ValueError])(resize)
    assert (job.queue, job.name, job.is_async, job.no_retry_on) == ("images", "resize", True, (ValueError,))
    assert (job.payload_type, job.result_type) == (Resize, str)
    assert job.__doc__ == "Makes it smaller."
    assert app.registry.find("images", "resize") is job
    assert app.registry.find("images", "other") is None
    assert list(app.registry) == [job]


async def test_a_definition_can_be_called_as_the_handler_it_was_made_of() -> None:
    app = Anvil()
    job = app.job(queue="images")(resize)
    assert await job(cast("Job", None), Resize("u")) == "u"

    @app.job(queue="images", name="count")
    def plain(job: Job, args: list[int]) -> int:
        return len(args)

    assert plain.is_async is False
    assert plain(cast("Job", None), [1, 2]) == 2


def test_a_second_definition_of_a_name_is_refused_where_it_is_made() -> None:
    app = Anvil()
    app.job(queue="images")(resize)
    with pytest.raises(ValueError, match=r"defined twice: .*test_jobs\.resize and"):
        app.job(queue="images")(resize)
    app.job(queue="images", name="other")(resize)
    app.job(queue="others")(resize)


def test_a_function_that_takes_something_else_is_no_handler() -> None:
    with pytest.raises(TypeError, match="is no handler"):
        Anvil().job(queue="images")(cast("Any", lambda job: None))
    with pytest.raises(TypeError, match="is no handler"):
        Anvil().job(queue="images")(cast("Any", lambda job, args, more: None))
    Anvil().job(queue="images", name="one")(cast("Any", lambda job, args, more=1: None))


def test_annotations_may_name_what_is_defined_further_down() -> None:
    app = Anvil()

    @app.job(queue="images")
    async def later(job: Job, args: Later) -> Later:
        return args

    assert later.payload_type is Later


def test_an_annotation_without_meaning_names_the_job() -> None:
    def lost(job: Job, args: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
        """A handler whose annotation cannot be read."""

    job = Anvil().job(queue="images")(lost)
    with pytest.raises(TypeError, match=r"images/lost.*Nowhere"):
        _ = job.payload_type


class Later(msgspec.Struct):
    """Defined after its first use."""


@pytest.mark.parametrize("queue", ["", "-a", "a b", "ä", "a" * 129, "a/b"])
def test_a_name_that_no_queue_can_have_is_refused(queue: str) -> None:
    with pytest.raises(ValueError, match="queue's name"):
        Anvil().ref(queue, "job")


@pytest.mark.parametrize("name", ["", "a\n", "ä" * 65])
def test_a_name_that_no_job_can_have_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="job's name"):
        Anvil().ref("queue", name)


def test_each_option_is_written_to_the_field_of_its_name() -> None:
    noon = datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    wire = wire_of(
        priority=5, lifo=True, headers={"a": "b"}, labels={"c": "d"}, idempotency_key="k",
        idempotency_mode="release_on_finish", run_at=noon, expires_at=noon, group_id="g", order_key=noon,
        max_attempts=7, backoff=fixed("3s", jitter=0), lease="1m", attempt_timeout=timedelta(minutes=5), max_stalled=0,
        max_starts=50, retain_completed="0", retain_failed="2d", receipt_ttl="1h",
    )  # fmt: skip
    at_ms = int(datetime(2030, 1, 1, 10, tzinfo=UTC).timestamp() * 1_000)
    assert wire == types.JobSpec(
        queue="images", name="resize", data=b'{"url":"u","width":800}', priority=5, lifo=True, headers={"a": "b"},
        labels={"c": "d"}, idempotency_key="k", idempotency_mode=types.IDEMPOTENCY_MODE_RELEASE_ON_FINISH,
        run_at_ms=at_ms, expires_at_ms=at_ms, group_id="g", order_key=at_ms,
        policy=types.JobPolicy(
            max_attempts=7, backoff=types.Backoff(kind=types.BACKOFF_KIND_FIXED, delay_ms=3_000, jitter=0),
            lease_ms=60_000, attempt_timeout_ms=300_000, max_stalled=0, max_starts=50, retain_completed_ms=0,
            retain_failed_ms=172_800_000, receipt_ttl_ms=3_600_000,
        ),
    )  # fmt: skip
    assert wire_of(delay="5m", expires_after="1h", order_key=7, group_id="g").delay_ms == 300_000


def test_an_option_that_is_not_given_is_not_sent() -> None:
    assert wire_of() == types.JobSpec(queue="images", name="resize", data=b'{"url":"u","width":800}')
    assert wire_of(backoff=exponential("1s")).policy.backoff == types.Backoff(
        kind=types.BACKOFF_KIND_EXPONENTIAL, delay_ms=1_000
    )


def test_an_add_goes_before_its_definition_and_none_takes_an_option_back() -> None:
    job = Anvil().job(
        queue="images", priority=5, max_attempts=7, labels={"a": "1"}, backoff=exponential("1s", max="5m", jitter=1)
    )(resize)
    plain = job.spec(Resize("u")).wire
    assert (plain.priority, plain.policy.max_attempts, dict(plain.labels)) == (5, 7, {"a": "1"})
    assert plain.policy.backoff.max_delay_ms == 300_000
    other = job.spec(Resize("u"), priority=0, max_attempts=None, labels={"b": "2"}, backoff=fixed("2s")).wire
    assert (other.priority, dict(other.labels)) == (0, {"b": "2"})
    assert not other.policy.HasField("max_attempts")
    assert other.policy.backoff == types.Backoff(kind=types.BACKOFF_KIND_FIXED, delay_ms=2_000)
    assert job.spec(Resize("u")).wire == plain, "an add leaves the definition alone"


def test_every_field_of_a_job_has_its_option() -> None:
    """But for those that come with the definition or the payload, and what is not built."""
    without = {"queue", "name", "data", "content_type", "policy", "deduplication"}
    fields = {field.name for field in types.JobSpec.DESCRIPTOR.fields} - without
    fields |= {field.name for field in types.JobPolicy.DESCRIPTOR.fields}
    named = {field.removesuffix("_ms").removesuffix("_at_ms") for field in fields}
    assert set(job_options.SpecOptions.__annotations__) == named
    assert {*job_options._SPEC_FIELDS, *job_options._POLICY_FIELDS} == named


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"delay": 5}, TypeError, "delay: a duration is a text with a unit"),
        ({"delay": "5"}, ValueError, "delay: a duration is written with a unit"),
        ({"dealy": "5s"}, TypeError, "a job has no option 'dealy'"),
        ({"run_at": datetime(2030, 1, 1)}, ValueError, "run_at: needs a time zone"),  # noqa: DTZ001
        ({"run_at": "tomorrow"}, TypeError, "run_at: is a datetime"),
        ({"priority": "high"}, TypeError, "priority: "),
        ({"priority": 2**40}, ValueError, "priority: "),
        ({"labels": {"a": 1}}, TypeError, "labels: "),
        ({"backoff": "5s"}, TypeError, "backoff: is made by"),
        ({"idempotency_mode": "always"}, ValueError, "idempotency_mode: is "),
    ],
)
def test_an_option_that_cannot_be_right_is_named(given: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=f"^{text}"):
        wire_of(**given)


def test_a_jitter_is_a_fraction() -> None:
    with pytest.raises(ValueError, match="jitter"):
        fixed("1s", jitter=1.5)


def test_a_payload_that_no_broker_takes_is_refused_here() -> None:
    job = Anvil().ref("files", "store", bytes, bytes)
    assert job.spec(b"x" * (15 << 20)).size > 15 << 20
    with pytest.raises(errors.PayloadTooLarge, match="15728641 bytes"):
        job.spec(b"x" * ((15 << 20) + 1))


def test_the_size_of_a_job_is_about_that_on_the_wire() -> None:
    job = Anvil().job(queue="images", labels={"a": "b"})(resize)
    for spec in (job.spec(Resize("u" * 1_000)), job.spec(Resize("u" * 1_000), headers={"a": "b" * 500})):
        assert spec.wire.ByteSize() <= spec.size <= spec.wire.ByteSize() + 32


async def test_a_job_of_another_program_is_added_with_the_types_agreed_on(world: World) -> None:
    send = world.app.ref("mail", "send", Resize, str, max_attempts=2)
    await send.add(Resize("u"), priority=1)
    (job,) = world.broker.jobs
    assert (job.queue, job.name, job.policy.max_attempts, job.priority) == ("mail", "send", 2, 1)
    assert world.app.registry.find("mail", "send") is None
