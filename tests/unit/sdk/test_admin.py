"""One method a call, with the deadlines of the contract."""

import inspect
import re
from typing import Any, get_type_hints

import pytest
from google.protobuf.descriptor import ServiceDescriptor

from anvilmq import errors
from anvilmq.admin import Admin
from anvilmq_proto.v1 import (
    job_service_pb2,
    receipt_service_pb2,
    scheduler_service_pb2,
    system_service_pb2,
    worker_service_pb2,
)
from tests.unit.sdk.cli.shell import FakeTransport

BUILT = {
    job_service_pb2: "AddJob AddJobBulk GetJob ListJobs WaitJob ListJobLogs CancelJob",
    worker_service_pb2: "ClaimJobs SettleJobs RenewLeases ReportProgress AppendJobLogs ListWorkers DrainWorker",
    receipt_service_pb2: "GetReceipt ListReceipts ReleaseReceipt DeleteReceipt",
    scheduler_service_pb2: (
        "UpsertScheduler GetScheduler ListSchedulers DeleteScheduler SetSchedulerSuspended TriggerScheduler PreviewSchedule"
    ),
    system_service_pb2: "GetServerInfo ListDefinitions ReleaseDefinition",
}
RPCS = [(module, name) for module, names in BUILT.items() for name in names.split()]
LONGER = {"AddJobBulk": 30, "ListJobs": 30, "SettleJobs": 30}


def method_of(name: str) -> Any:
    return getattr(Admin, re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower())


def service_of(module: Any) -> ServiceDescriptor:
    (service,) = module.DESCRIPTOR.services_by_name.values()
    assert isinstance(service, ServiceDescriptor)
    return service


@pytest.mark.parametrize(("module", "name"), RPCS, ids=[name for _, name in RPCS])
async def test_each_call_goes_out_under_its_name_with_the_deadline_of_the_contract(module: Any, name: str) -> None:
    rpc = service_of(module).methods_by_name[name]
    request = getattr(module, rpc.input_type.name)()
    answer = getattr(module, rpc.output_type.name)()
    transport = FakeTransport()
    transport.answer(name, answer)
    assert await method_of(name)(Admin(transport), request) is answer
    assert transport.calls == [(name, request, LONGER.get(name, 5))]


@pytest.mark.parametrize(("module", "name"), RPCS, ids=[name for _, name in RPCS])
def test_each_call_is_typed_with_its_messages(module: Any, name: str) -> None:
    rpc = service_of(module).methods_by_name[name]
    hints = get_type_hints(method_of(name))
    assert hints["request"].DESCRIPTOR is rpc.input_type
    assert hints["return"].DESCRIPTOR is rpc.output_type


def test_there_is_no_method_without_a_call() -> None:
    public = {name for name, _ in inspect.getmembers(Admin, inspect.isfunction) if not name.startswith("_")}
    assert public == {method_of(name).__name__ for _, name in RPCS}


async def test_a_long_poll_may_take_longer_than_it_waits() -> None:
    transport = FakeTransport()
    transport.answer("WaitJob", job_service_pb2.WaitJobResponse())
    transport.answer("ClaimJobs", worker_service_pb2.ClaimJobsResponse())
    admin = Admin(transport)
    await admin.wait_job(job_service_pb2.WaitJobRequest(job_id="j", wait_ms=60_000))
    await admin.claim_jobs(worker_service_pb2.ClaimJobsRequest(max_jobs=1, wait_ms=1_500))
    assert [call.timeout_s for call in transport.calls] == [65.0, 6.5]


async def test_a_deadline_of_the_call_goes_before_that_of_the_instance_and_that_before_the_default() -> None:
    transport = FakeTransport()
    transport.answer("GetServerInfo", system_service_pb2.GetServerInfoResponse())
    admin = Admin(transport, timeout_s=2.0)
    await admin.get_server_info(system_service_pb2.GetServerInfoRequest())
    await admin.get_server_info(system_service_pb2.GetServerInfoRequest(), timeout_s=0.5)
    assert [call.timeout_s for call in transport.calls] == [2.0, 0.5]


async def test_a_refusal_comes_as_it_was_raised() -> None:
    transport = FakeTransport()
    transport.answer("GetJob", errors.JobNotFound("there is no job j"))
    with pytest.raises(errors.JobNotFound):
        await Admin(transport).get_job(job_service_pb2.GetJobRequest(job_id="j"))
