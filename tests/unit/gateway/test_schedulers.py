"""Recurring definitions: what the engine is handed, what callers are told, and every way to be refused."""

from __future__ import annotations

from typing import Any

import pytest

from anvilmq_broker.domain import backoff, commands, refusals
from anvilmq_broker.gateway import definitions, mapping
from anvilmq_broker.gateway.limits import KIB, Limits
from anvilmq_broker.gateway.refusals import Rejected
from anvilmq_proto.v1 import scheduler_service_pb2 as pb
from anvilmq_proto.v1 import system_service_pb2, types_pb2, worker_service_pb2
from tests.support.clock import START_MS
from tests.support.rules import rule
from tests.unit.gateway.bundle import JOB_ID, Bundle, delivery, record, scheduler, spec
from tests.unit.gateway.definitions_made import OWNER, OWNER_MESSAGE, definition, upsert

UPSERT = "SchedulerService/UpsertScheduler"
YEARS_100 = 100 * 365 * 86_400_000
LAST_INSTANT = 253_402_300_799_999


async def handed_over(request: pb.UpsertSchedulerRequest) -> commands.UpsertScheduler:
    bundle = Bundle()
    await bundle.call(UPSERT, request)
    return bundle.broker.one(commands.UpsertScheduler)


@rule("6.1")
async def test_every_field_of_a_definition_arrives_unchanged() -> None:
    policy = types_pb2.JobPolicy(max_attempts=5, backoff=types_pb2.Backoff(delay_ms=10_000, jitter=0.5))
    request = pb.UpsertSchedulerRequest(
        scheduler=pb.Scheduler(
            name="nightly",
            spec=pb.SchedulerSpec(
                schedule=pb.Schedule(
                    cron=" 0 2 * * MON ",
                    time_zone="Europe/Berlin",
                    start_at_ms=1,
                    end_at_ms=2,
                    limit=3,
                    jitter_ms=4,
                ),
                job=spec(data=b"1", labels={"a": "b"}, delay_ms=5, expires_after_ms=6, priority=7, policy=policy),
                concurrency_policy="CONCURRENCY_POLICY_FORBID",
                catch_up="CATCH_UP_POLICY_ALL",
                max_catch_up_runs=8,
                starting_deadline_ms=9,
                suspended=False,
                description="Reports; see the manual",
            ),
            owner=OWNER_MESSAGE,
        ),
        dry_run=True,
        adopt=True,
    )
    assert await handed_over(request) == commands.UpsertScheduler(
        name="nightly",
        spec=commands.SchedulerSpec(
            cron="0 2 * * MON",
            time_zone="Europe/Berlin",
            start_at_ms=1,
            end_at_ms=2,
            limit=3,
            jitter_ms=4,
            job=commands.NewJob(
                "q",
                "n",
                b"1",
                priority=7,
                delay_ms=5,
                expires_after_ms=6,
                labels={"a": "b"},
                policy=commands.PolicyPatch(
                    max_attempts=5, backoff=backoff.Backoff(backoff.Kind.EXPONENTIAL, 10_000, 300_000, 500)
                ),
            ),
            concurrency_policy=2,
            catch_up=3,
            max_catch_up_runs=8,
            starting_deadline_ms=9,
            suspended=False,
            description="Reports; see the manual",
        ),
        owner=OWNER,
        dry_run=True,
        adopt=True,
    )


@rule("6.7")
async def test_what_is_left_out_gets_its_default_so_that_contents_can_be_compared() -> None:
    cron = (await handed_over(upsert({"cron": "@daily"}))).spec
    assert cron == (await handed_over(upsert({"cron": "@daily", "time_zone": "Etc/UTC"}, max_catch_up_runs=100))).spec
    assert (cron.time_zone, cron.concurrency_policy, cron.catch_up, cron.max_catch_up_runs) == ("Etc/UTC", 1, 1, 100)
    every = (await handed_over(upsert({"every_ms": 100, "offset_ms": 99}))).spec
    assert (every.cron, every.time_zone, every.every_ms, every.offset_ms) == ("", "", 100, 99)


async def test_a_policy_of_a_later_contract_reads_as_the_default() -> None:
    found = (await handed_over(upsert({"cron": "@daily"}, concurrency_policy=99, catch_up=99))).spec
    assert (found.concurrency_policy, found.catch_up) == (1, 1)


async def test_suspended_is_left_to_the_stored_value_when_it_is_not_sent() -> None:
    assert (await handed_over(upsert({"cron": "@daily"}))).spec.suspended is None
    assert (await handed_over(upsert({"cron": "@daily"}, suspended=False))).spec.suspended is False


# ---------------------------------------------------------------------------------------------- refusals

INVALID, SCHEDULE, ZONE = "INVALID_FIELD", "SCHEDULE_INVALID", "TIME_ZONE_UNKNOWN"
DAILY = {"cron": "@daily"}
TIMINGS: list[tuple[str, str, dict[str, Any], str]] = [
    (SCHEDULE, "", {}, "needs one of cron and every_ms"),
    (SCHEDULE, "cron", {"cron": ""}, "five"),
    (SCHEDULE, "cron", {"cron": "* * * *"}, "minute hour day month weekday"),
    (SCHEDULE, "cron", {"cron": "0 0 0 * * * 2030"}, "year"),
    (SCHEDULE, "cron", {"cron": "0 22-2 * * *"}, "22-23,0-2"),
    (SCHEDULE, "cron", {"cron": "@every 5m"}, "interval"),
    (SCHEDULE, "cron", {"cron": "@reboot"}, "when the program starts"),
    (SCHEDULE, "cron", {"cron": "0 0 15W * *"}, "nearest working day"),
    (SCHEDULE, "cron", {"cron": "H 2 * * *"}, "jitter"),
    (SCHEDULE, "cron", {"cron": "R R * * *"}, "jitter"),
    (SCHEDULE, "cron", {"cron": "48-48 * * * * *" + " " * 128}, "at most 128"),
    (SCHEDULE, "cron", {"cron": "0 0 30 2 *"}, "never comes"),
    (SCHEDULE, "cron", {"cron": "TZ=Asia/Tokyo 0 0 * * *"}, "the field time_zone"),
    (ZONE, "time_zone", {"cron": "@daily", "time_zone": "Europe/Berln"}, "Europe/Berlin"),
    (ZONE, "time_zone", {"cron": "@daily", "time_zone": "../etc/passwd"}, "IANA"),
    (SCHEDULE, "time_zone", {"every_ms": 1_000, "time_zone": "Etc/UTC"}, "leave time_zone out"),
    (SCHEDULE, "every_ms", {"every_ms": 99}, "at least 100"),
    (SCHEDULE, "every_ms", {"every_ms": 0}, "at least 100"),
    (SCHEDULE, "every_ms", {"every_ms": YEARS_100 + 1}, "100 years"),
    (SCHEDULE, "offset_ms", {"every_ms": 100, "offset_ms": 100}, "every_ms - 1 (99)"),
    (SCHEDULE, "offset_ms", {"every_ms": 100, "offset_ms": -1}, "every_ms - 1 (99)"),
    (SCHEDULE, "offset_ms", {"cron": "@daily", "offset_ms": 1}, "leave it out"),
    (SCHEDULE, "start_at_ms", {**DAILY, "start_at_ms": -1}, f"0..{LAST_INSTANT}"),
    (SCHEDULE, "end_at_ms", {**DAILY, "end_at_ms": LAST_INSTANT + 1}, f"0..{LAST_INSTANT}"),
    (SCHEDULE, "end_at_ms", {**DAILY, "start_at_ms": 5, "end_at_ms": 4}, "start_at_ms"),
    (SCHEDULE, "limit", {**DAILY, "limit": -1}, "0.."),
    (SCHEDULE, "jitter_ms", {**DAILY, "jitter_ms": -1}, "0.."),
    (SCHEDULE, "jitter_ms", {**DAILY, "jitter_ms": YEARS_100 + 1}, "0.."),
]


@rule("6.1")
@pytest.mark.parametrize(("reason", "field", "timing", "remedy"), TIMINGS)
async def test_a_wrong_schedule_is_refused_alike_by_upsert_and_preview_with_its_path_and_remedy(
    reason: str, field: str, timing: dict[str, Any], remedy: str
) -> None:
    bundle = Bundle()
    below = f".{field}" if field else ""
    refused = await bundle.refusal(UPSERT, upsert(timing))
    assert (refused.code, refused.reason, refused.field) == (3, reason, f"scheduler.spec.schedule{below}")
    assert remedy in refused.message
    preview = pb.PreviewScheduleRequest(schedule=pb.Schedule(**timing))
    refused = await bundle.refusal("SchedulerService/PreviewSchedule", preview)
    assert (refused.code, refused.reason, refused.field) == (3, reason, f"schedule{below}")
    assert remedy in refused.message
    assert bundle.broker.asked == []


TEMPLATES: list[tuple[str, str, dict[str, Any]]] = [
    (INVALID, "job.idempotency_key", {"idempotency_key": "k"}),
    (INVALID, "job.idempotency_mode", {"idempotency_mode": "IDEMPOTENCY_MODE_RETAIN"}),
    (INVALID, "job.deduplication", {"deduplication": types_pb2.Deduplication(id="d")}),
    (INVALID, "job.run_at_ms", {"run_at_ms": START_MS}),
    (INVALID, "job.expires_at_ms", {"expires_at_ms": START_MS}),
    (INVALID, "job.queue", {"queue": "!"}),
    (INVALID, "job.name", {"name": ""}),
    (INVALID, "job.policy.max_attempts", {"policy": types_pb2.JobPolicy(max_attempts=0)}),
    ("PAYLOAD_TOO_LARGE", "job.data", {"data": b"x" * (KIB + 1)}),
]


@rule("6.1")
@pytest.mark.parametrize(("reason", "field", "job"), TEMPLATES)
async def test_a_job_that_cannot_be_made_at_every_tick_is_refused(reason: str, field: str, job: dict[str, Any]) -> None:
    bundle = Bundle(limits=Limits(max_payload_bytes=KIB))
    refused = await bundle.refusal(UPSERT, upsert(DAILY, job=spec(**job)))
    assert (refused.code, refused.reason, refused.field) == (3, reason, f"scheduler.spec.{field}")
    assert ": " in refused.message
    assert bundle.broker.asked == []


async def test_a_group_in_a_job_template_waits_for_groups_to_be_built() -> None:
    refused = await Bundle().refusal(UPSERT, upsert(DAILY, job=spec(group_id="g")))
    assert (refused.code, refused.reason) == (12, "FEATURE_NOT_BUILT")
    assert refused.metadata["field"] == "scheduler.spec.job.group_id"


SPECS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("max_catch_up_runs", {"max_catch_up_runs": 1}, {"max_catch_up_runs": 0}),
    ("max_catch_up_runs", {"max_catch_up_runs": 1_000}, {"max_catch_up_runs": 1_001}),
    ("starting_deadline_ms", {"starting_deadline_ms": YEARS_100}, {"starting_deadline_ms": YEARS_100 + 1}),
    ("starting_deadline_ms", {"starting_deadline_ms": 1}, {"starting_deadline_ms": -1}),
    ("description", {"description": "ä" * 512}, {"description": "ä" * 512 + "x"}),
    ("description", {"description": "two\nlines"}, {"description": "\0"}),
    ("job", {}, {"job": None}),
]


@rule("7")
@pytest.mark.parametrize(("field", "good", "bad"), SPECS)
async def test_a_definition_at_its_limit_is_taken_and_one_beyond_names_the_field(
    field: str, good: dict[str, Any], bad: dict[str, Any]
) -> None:
    await Bundle().call(UPSERT, upsert(DAILY, **good))
    bundle = Bundle()
    refused = await bundle.refusal(UPSERT, upsert(DAILY, **bad))
    assert (refused.reason, refused.field) == (INVALID, f"scheduler.spec.{field}")
    assert bundle.broker.asked == []


@pytest.mark.parametrize(
    ("field", "request_"),
    [
        ("scheduler", pb.UpsertSchedulerRequest()),
        ("scheduler.name", pb.UpsertSchedulerRequest(scheduler=pb.Scheduler(spec=pb.SchedulerSpec()))),
        ("scheduler.spec", pb.UpsertSchedulerRequest(scheduler=pb.Scheduler(name="s"))),
    ],
)
async def test_a_definition_needs_name_and_content(field: str, request_: pb.UpsertSchedulerRequest) -> None:
    refused = await Bundle().refusal(UPSERT, request_)
    assert (refused.reason, refused.field) == (INVALID, field)


async def test_a_definition_without_a_schedule_is_told_what_to_set() -> None:
    request = upsert(DAILY)
    request.scheduler.spec.ClearField("schedule")
    refused = await Bundle().refusal(UPSERT, request)
    assert (refused.reason, refused.field) == (SCHEDULE, "scheduler.spec.schedule")
    assert "cron or every_ms" in refused.message


async def test_a_flow_of_a_template_that_is_not_there_is_refused() -> None:
    refused = await Bundle().refusal(UPSERT, upsert(DAILY, flow=pb.FlowTarget(template="import", parameters_json="{}")))
    assert (refused.code, refused.reason, refused.metadata) == (5, "TEMPLATE_NOT_FOUND", {"name": "import"})
    assert "make it first" in refused.message


@pytest.mark.parametrize("text", ["[]", "{", "1", "{} {}"])
async def test_parameters_that_are_no_json_object_are_refused(text: str) -> None:
    refused = await Bundle().refusal(UPSERT, upsert(DAILY, flow=pb.FlowTarget(template="t", parameters_json=text)))
    assert (refused.reason, refused.field) == ("PARAMETER_INVALID", "scheduler.spec.flow.parameters_json")


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("kind", ""),
        ("kind", "a b"),
        ("namespace", ""),
        ("namespace", "a; rm"),
        ("name", ""),
        ("name", "-n"),
        ("uid", ""),
        ("uid", "u" * 129),
        ("generation", -1),
        ("spec_hash", "h" * 129),
        ("manager", "m" * 254),
    ],
)
async def test_an_owner_is_a_resource_of_kubernetes(field: str, wrong: Any) -> None:
    request = upsert(DAILY)
    request.scheduler.owner.CopyFrom(OWNER_MESSAGE)
    setattr(request.scheduler.owner, field, wrong)
    refused = await Bundle().refusal(UPSERT, request)
    assert (refused.reason, refused.field) == (INVALID, f"scheduler.owner.{field}")


# ----------------------------------------------------------------------------------------------- answers


async def test_a_definition_is_told_with_everything_that_is_stored() -> None:
    bundle = Bundle()
    stored = scheduler(
        spec=commands.SchedulerSpec(
            cron="@daily",
            time_zone="Europe/Berlin",
            limit=9,
            job=commands.NewJob(
                "q", "n", b"{}", labels={"a": "b"}, policy=commands.PolicyPatch(max_attempts=1, backoff=backoff.DEFAULT)
            ),
            concurrency_policy=3,
            suspended=True,
        ),
        owner=OWNER,
        last_run=commands.JobRef(7, START_MS),
        last_state=5,
        next_tick_at_ms=11,
        last_tick_at_ms=10,
        run_count=1,
        skipped_count=2,
        missed_count=3,
        problem_reason="QUEUE_FULL",
        problem_message="full",
    )
    bundle.broker.answers[commands.GetScheduler] = commands.SchedulerFound(stored)
    found = (await bundle.call("SchedulerService/GetScheduler", pb.GetSchedulerRequest(name="nightly"))).scheduler
    assert found == pb.Scheduler(
        name="nightly",
        spec=pb.SchedulerSpec(
            schedule=pb.Schedule(cron="@daily", time_zone="Europe/Berlin", limit=9),
            job=types_pb2.JobSpec(
                queue="q",
                name="n",
                data=b"{}",
                content_type="application/json",
                labels={"a": "b"},
                policy=types_pb2.JobPolicy(
                    max_attempts=1,
                    backoff=types_pb2.Backoff(
                        kind="BACKOFF_KIND_EXPONENTIAL", delay_ms=1_000, max_delay_ms=300_000, jitter=0.25
                    ),
                ),
            ),
            concurrency_policy="CONCURRENCY_POLICY_REPLACE",
            catch_up="CATCH_UP_POLICY_LATEST",
            max_catch_up_runs=100,
            suspended=True,
        ),
        owner=OWNER_MESSAGE,
        uid="uid-1",
        content_hash="hash",
        next_tick_at_ms=11,
        last_tick_at_ms=10,
        last_job_id=JOB_ID,
        last_state="JOB_STATE_COMPLETED",
        run_count=1,
        skipped_count=2,
        missed_count=3,
        problem_reason="QUEUE_FULL",
        problem_message="full",
        created_at_ms=START_MS,
        updated_at_ms=START_MS + 1,
    )


@rule("6.7")
async def test_what_is_answered_can_be_upserted_again_as_the_same_content() -> None:
    sent = await handed_over(
        upsert(
            {"every_ms": 60_000, "offset_ms": 5, "jitter_ms": 3},
            job=spec(headers={"h": "v"}, delay_ms=1, lifo=False, policy=types_pb2.JobPolicy(max_stalled=0)),
            suspended=False,
        )
    )
    told = definitions.scheduler(scheduler(spec=sent.spec))
    again = await handed_over(pb.UpsertSchedulerRequest(scheduler=told))
    assert again.spec == sent.spec


@pytest.mark.parametrize(
    ("number", "name"), [(1, "CREATED"), (2, "UPDATED"), (3, "UNCHANGED"), (4, "STALE_GENERATION")]
)
async def test_an_upsert_says_what_it_came_to(number: int, name: str) -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.UpsertScheduler] = commands.UpsertedScheduler(scheduler(), number)
    response = await bundle.call(UPSERT, upsert(DAILY))
    assert response.outcome == types_pb2.UpsertOutcome.Value(f"UPSERT_OUTCOME_{name}")
    assert response.scheduler.uid == "uid-1"


@rule("6.7")
@pytest.mark.parametrize(
    ("verb", "command"),
    [
        ("edit", "kubectl -n shop edit jobscheduler nightly"),
        ("delete", "kubectl -n shop delete jobscheduler nightly"),
        ("suspend", """kubectl -n shop patch jobscheduler nightly --type merge -p '{"spec":{"suspend":true}}'"""),
        ("resume", """kubectl -n shop patch jobscheduler nightly --type merge -p '{"spec":{"suspend":false}}'"""),
    ],
)
async def test_an_edit_of_what_a_resource_owns_names_the_resource_and_the_command(verb: str, command: str) -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.UpsertScheduler] = refusals.owned_by_crd("nightly", OWNER, verb)
    refused = await bundle.refusal(UPSERT, upsert(DAILY))
    assert (refused.code, refused.reason) == (9, "OWNED_BY_CRD")
    assert refused.metadata == {"kind": "JobScheduler", "namespace": "shop", "name": "nightly"}
    assert refused.message.endswith(command)
    assert "JobScheduler shop/nightly" in refused.message


async def test_a_name_that_is_taken_says_by_whom() -> None:
    bundle = Bundle()
    for holder, metadata in ((OWNER, {"kind": "JobScheduler", "namespace": "shop", "name": "nightly"}), (None, {})):
        bundle.broker.answers[commands.UpsertScheduler] = refusals.name_conflict("nightly", holder)
        refused = await bundle.refusal(UPSERT, upsert(DAILY))
        assert (refused.code, refused.reason) == (6, "NAME_CONFLICT")
        assert refused.metadata == (metadata or {"kind": "", "namespace": "", "name": ""})
        assert holder is not None or "adopt" in refused.message


async def test_a_definition_that_is_not_there_is_told_so() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.GetScheduler] = refusals.scheduler_not_found("x")
    refused = await bundle.refusal("SchedulerService/GetScheduler", pb.GetSchedulerRequest(name="x"))
    assert (refused.code, refused.reason, refused.metadata) == (5, "SCHEDULER_NOT_FOUND", {"name": "x"})


async def test_a_page_of_definitions_goes_on_where_it_ended() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.ListSchedulers] = commands.SchedulerPage([scheduler()], "nightly")
    request = pb.ListSchedulersRequest(name_prefix="n_", queue="q", flow_template="t", page_size=1)
    page = await bundle.call("SchedulerService/ListSchedulers", request)
    assert [each.name for each in page.schedulers] == ["nightly"]
    bundle.broker.answers[commands.ListSchedulers] = commands.SchedulerPage([])
    request.page_token = page.next_page_token
    assert (await bundle.call("SchedulerService/ListSchedulers", request)).next_page_token == ""
    first, second = bundle.broker.of(commands.ListSchedulers)
    assert first == commands.ListSchedulers("n_", "q", "t", 1)
    assert second == commands.ListSchedulers("n_", "q", "t", 1, "nightly")
    request.queue = "other"
    refused = await bundle.refusal("SchedulerService/ListSchedulers", request)
    assert refused.reason == "PAGE_TOKEN_INVALID"


@rule("6.7")
async def test_a_delete_and_a_release_name_their_owner() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.DeleteScheduler] = commands.DeletedScheduler(True)
    request = pb.DeleteSchedulerRequest(name="s", owner=OWNER_MESSAGE, allow_missing=True)
    assert (await bundle.call("SchedulerService/DeleteScheduler", request)).deleted
    assert bundle.broker.one(commands.DeleteScheduler) == commands.DeleteScheduler("s", OWNER, True)
    bundle.broker.answers[commands.ReleaseDefinition] = commands.ReleasedDefinition(True)
    release = system_service_pb2.ReleaseDefinitionRequest(
        type="DEFINITION_TYPE_SCHEDULER", name="s", owner=OWNER_MESSAGE
    )
    assert (await bundle.call("SystemService/ReleaseDefinition", release)).released
    assert bundle.broker.one(commands.ReleaseDefinition) == commands.ReleaseDefinition("s", OWNER)


@pytest.mark.parametrize(
    ("reason", "field", "fields"),
    [
        (INVALID, "type", {"type": 0}),
        (INVALID, "type", {"type": 9}),
        (INVALID, "name", {"name": ""}),
        (INVALID, "owner", {"owner": None}),
        ("FEATURE_NOT_BUILT", "type", {"type": 2}),
    ],
)
async def test_a_release_says_what_and_whose(reason: str, field: str, fields: dict[str, Any]) -> None:
    bundle = Bundle()
    whole = {"type": 1, "name": "s", "owner": OWNER_MESSAGE, **fields}
    refused = await bundle.refusal(
        "SystemService/ReleaseDefinition", system_service_pb2.ReleaseDefinitionRequest(**whole)
    )
    assert (refused.reason, refused.metadata["field"]) == (reason, field)
    assert bundle.broker.asked == []


@rule("6.7")
async def test_definitions_are_listed_with_their_owners_as_stored() -> None:
    bundle = Bundle()
    after = ("JobScheduler", "shop", "nightly", 1, "nightly")
    bundle.broker.answers[commands.ListDefinitions] = commands.DefinitionPage([definition()], after)
    request = system_service_pb2.ListDefinitionsRequest(
        owner_namespace="shop", owner_kind="JobScheduler", owner_manager="anvilmq/anvilmq"
    )
    page = await bundle.call("SystemService/ListDefinitions", request)
    assert list(page.definitions) == [
        system_service_pb2.Definition(
            type="DEFINITION_TYPE_SCHEDULER",
            name="nightly",
            owner=OWNER_MESSAGE,
            next_tick_at_ms=11,
            last_tick_at_ms=10,
            last_job_id=JOB_ID,
        )
    ]
    request.page_token = page.next_page_token
    await bundle.call("SystemService/ListDefinitions", request)
    first, second = bundle.broker.of(commands.ListDefinitions)
    assert first == commands.ListDefinitions("shop", "JobScheduler", "anvilmq/anvilmq", 100)
    assert second.after == after


async def test_a_definition_is_suspended_and_resumed() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.SuspendScheduler] = commands.SchedulerFound(scheduler())
    for suspended in (True, False):
        request = pb.SetSchedulerSuspendedRequest(name="s", suspended=suspended)
        assert (await bundle.call("SchedulerService/SetSchedulerSuspended", request)).scheduler.name == "nightly"
    assert bundle.broker.of(commands.SuspendScheduler) == [
        commands.SuspendScheduler("s", True),
        commands.SuspendScheduler("s", False),
    ]


async def test_a_run_now_answers_its_job_and_whether_it_was_made_before() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.TriggerScheduler] = commands.TriggeredScheduler(commands.JobRef(7, START_MS), True)
    request = pb.TriggerSchedulerRequest(name="s", run_key="k" * 120)
    response = await bundle.call("SchedulerService/TriggerScheduler", request)
    assert response == pb.TriggerSchedulerResponse(job_id=JOB_ID, existing=True)
    assert bundle.broker.one(commands.TriggerScheduler) == commands.TriggerScheduler("s", "k" * 120)
    for wrong in ("k" * 121, "a\n"):
        request.run_key = wrong
        assert (await bundle.refusal("SchedulerService/TriggerScheduler", request)).field == "run_key"


def test_a_job_and_a_delivery_of_a_tick_name_both() -> None:
    made = mapping.job(record(scheduler="nightly", tick_at_ms=5), START_MS, full=False)
    assert (made.scheduler, made.tick_at_ms) == ("nightly", 5)
    replaced = mapping.job(record(caused_by=commands.JobRef(7, START_MS)), START_MS, full=False)
    assert replaced.caused_by_job_id == JOB_ID
    sent = worker_service_pb2.ClaimJobsResponse()
    mapping.put_deliveries(sent.deliveries, [delivery(scheduler="nightly", tick_at_ms=5), delivery()])
    assert [(each.scheduler, each.tick_at_ms) for each in sent.deliveries] == [("nightly", 5), ("", 0)]


def test_an_owner_with_the_names_of_a_resource_is_taken_as_it_is() -> None:
    assert definitions.owner(OWNER_MESSAGE, "owner") == OWNER
    with pytest.raises(Rejected):
        definitions.owner(types_pb2.Owner(kind="K", namespace="n", name="x." * 126 + "xx", uid="u"), "owner")


# ----------------------------------------------------------------------------------------------- preview


@rule("6.8")
async def test_a_preview_has_ticks_words_and_warnings_and_asks_the_engine_nothing() -> None:
    bundle = Bundle()
    request = pb.PreviewScheduleRequest(
        schedule=pb.Schedule(cron="30 2 * * *", time_zone="Europe/Berlin"), after_at_ms=1_806_102_000_000, count=2
    )
    found = await bundle.call("SchedulerService/PreviewSchedule", request)
    assert [tick.local for tick in found.ticks] == ["2027-03-27T02:30:00+01:00", "2027-03-28T03:00:00+02:00"]
    assert [tick.at_ms for tick in found.ticks] == [1_806_111_000_000, 1_806_195_600_000]
    assert "02:30" in found.description
    assert len(found.warnings) == 1
    assert bundle.broker.asked == []


@rule("6.8")
async def test_a_preview_shows_five_ticks_from_now_unless_told_otherwise() -> None:
    bundle = Bundle()
    request = pb.PreviewScheduleRequest(schedule=pb.Schedule(every_ms=1_000))
    found = await bundle.call("SchedulerService/PreviewSchedule", request)
    assert [tick.at_ms for tick in found.ticks] == [START_MS + 1_000 * n for n in range(1, 6)]
    for field, good, wrong in (("count", 100, 101), ("count", 1, -1), ("after_at_ms", LAST_INSTANT, -1)):
        setattr(request, field, good)
        await bundle.call("SchedulerService/PreviewSchedule", request)
        setattr(request, field, wrong)
        assert (await bundle.refusal("SchedulerService/PreviewSchedule", request)).field == field
        request.ClearField(field)
