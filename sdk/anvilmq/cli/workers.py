"""Commands about workers: run one, see which there are, send one away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from anvilmq.cli import exits, paging, values
from anvilmq.cli.command import Cli
from anvilmq.cli.paging import PageFlags

if TYPE_CHECKING:
    from anvilmq.cli.output import Shape
    from anvilmq_proto.v1.worker_service_pb2 import Worker

Target = Annotated[
    str, typer.Argument(metavar="MODULE:APP", help="Where the app is, such as shop.jobs:app.", show_default=False)
]


def run(
    cli: Cli,
    target: Target,
    *,
    queues: Annotated[
        str | None,
        typer.Option("--queues", metavar="A,B", help="Which to serve. Else all of the app's.", show_default=False),
    ] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", metavar="N", min=1, help="Jobs that run at once.")] = 8,
    pool: Annotated[
        list[str] | None,
        typer.Option(
            "--pool", metavar="QUEUE=N", help="Slots for that queue alone. May be repeated.", show_default=False
        ),
    ] = None,
    prefetch: Annotated[
        int | None,
        typer.Option(
            "--prefetch",
            metavar="N",
            min=0,
            help="Most jobs held beyond the free slots; 0 is none. Else as the run times suggest.",
            show_default=False,
        ),
    ] = None,
    grace: Annotated[
        str | None,
        typer.Option(
            "--grace",
            metavar="DURATION",
            help="Time to leave after SIGTERM. Else ANVILMQ_GRACE, else 25s.",
            show_default=False,
        ),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(
            "--http",
            metavar="HOST:PORT",
            help="Serve /healthz, /readyz and /metrics there, such as :8081.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Shown by worker list.", show_default=False)
    ] = None,
) -> int:
    """Run the handlers of an app until SIGTERM or Ctrl-C.

    Then it takes no more jobs, lets running ones end within the grace and hands back the rest; a second signal hands
    back at once. The module is looked for in the current folder first.

    \b
    anvilmq worker run shop.jobs:app --queues images,mail --pool pdf=2
    """
    from anvilmq.cli import running

    pools = {queue: _slots(text) for queue, text in values.pairs("--pool", pool).items()}
    return running.run_worker(
        cli,
        target,
        queues=values.listed("--queues", queues) if queues else None,
        concurrency=concurrency,
        pools=pools,
        prefetch=prefetch,
        grace=grace,
        http=http,
        name=name or "",
    )


async def list_workers(
    cli: Cli,
    *,
    queue: Annotated[
        str | None, typer.Option("--queue", metavar="QUEUE", help="Those that serve it.", show_default=False)
    ] = None,
    **flags: Unpack[PageFlags],
) -> None:
    """List the workers that are connected, or have asked for jobs lately."""
    from anvilmq_proto.v1.worker_service_pb2 import ListWorkersRequest

    request = ListWorkersRequest(queue=queue or "")
    async with cli.admin() as admin:
        listing = cli.printer.listing(_shape(cli.now_ms()))
        await paging.fill(listing, flags, admin.list_workers, request, lambda page: page.workers)


async def drain(
    cli: Cli,
    worker_id: Annotated[str, typer.Argument(metavar="ID", help="The worker's id.", show_default=False)],
    *,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Why, for its log.", show_default=False)
    ] = None,
) -> None:
    """Ask a worker to finish what it runs, and leave."""
    from anvilmq_proto.v1.worker_service_pb2 import DrainWorkerRequest

    async with cli.admin() as admin:
        await admin.drain_worker(DrainWorkerRequest(worker_id=worker_id, reason=reason or ""))
    cli.terminal.note(f"worker {worker_id} is asked to leave")


def _slots(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise exits.UsageProblem("--pool", f"{text!r} is no number of slots; write it as pdf=2")
    return int(text)


def _shape(now_ms: int) -> Shape[Worker]:
    from anvilmq.cli import times
    from anvilmq.cli.output import Shape
    from anvilmq.cli.tables import Column

    def queues(worker: Worker) -> str:
        return ",".join(queue for pool in worker.pools for queue in pool.queues)

    def slots(worker: Worker) -> str:
        return str(sum(pool.concurrency for pool in worker.pools) or "")

    def state(worker: Worker) -> str:
        return "draining" if worker.draining else "session" if worker.session else "polling"

    return Shape(
        columns=(
            Column("ID", lambda worker: worker.identity.worker_id),
            Column("NAME", lambda worker: worker.identity.name),
            Column("STATE", state),
            Column("QUEUES", queues),
            Column("RUNNING", lambda worker: str(worker.running)),
            Column("SLOTS", slots),
            Column("AGE", lambda worker: times.age(worker.connected_at_ms, now_ms)),
            Column("SEEN", lambda worker: times.age(worker.last_seen_at_ms, now_ms), wide=True),
            Column("CREDIT", lambda worker: str(worker.open_credit), wide=True),
            Column("POD", lambda worker: worker.identity.pod, wide=True),
            Column("NODE", lambda worker: worker.identity.node, wide=True),
            Column("SDK", lambda worker: f"{worker.identity.sdk} {worker.identity.sdk_version}".strip(), wide=True),
        ),
        details=lambda _: [],
        name=lambda worker: worker.identity.worker_id,
    )
