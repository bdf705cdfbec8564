"""What a command costs does not grow with what is stored: equal steps of the database's machine for 1 000 and 100 000 jobs.

The engine inside the driver tells how many steps a statement took while its cursor lives. A step of a statement that
looks at one row more is counted; how deep an index is, is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from anvilmq_broker.domain import commands
from anvilmq_broker.store.libsql import migrate, opening, statements
from anvilmq_broker.store.libsql.driver import Connection
from anvilmq_broker.store.libsql.store import LibsqlStore
from tests.support import bundles
from tests.support.bundles import complete, fail, new_job, policy, release
from tests.support.chance import SeededChance
from tests.support.clock import START_MS, FakeClock
from tests.support.store_driver import StoreDriver
from tests.unit.store.test_statements import hot

Steps = dict[str, list[tuple[str, int]]]
"""By what was done: the statements it ran, each with its steps."""

HOUR: Final = 3_600_000
FILL: Final = (
    "INSERT INTO queues (id, name, created_ms) VALUES (1, 'mail', :t), (2, 'post', :t)",
    """INSERT INTO jobs (id, created_ms, queue_id, name, state, priority, run_at, ready_at, ready_seq, finished_at,
        finish_reason, traits)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :jobs),
    s (i, state) AS (SELECT i, CASE WHEN i % 20 = 0 THEN 5 WHEN i % 2 THEN 2 ELSE 1 END FROM n)
    SELECT i, :t - 1000, 1, 'send', state, i % 3 / 2 * 5, iif(state = 2, :t + 3600000, :t - 1000),
        CASE state WHEN 2 THEN :t + 3600000 + i WHEN 1 THEN :t - 1000 END, iif(state < 5, i, NULL),
        iif(state = 5, :t + iif(i < 70, 0, 9000000000), NULL), iif(state = 5, 1, NULL), iif(state = 5, 1, 0) FROM s""",
    "INSERT INTO job_bodies (job_id, data, idempotency_key) SELECT id, x'00', iif(state = 5, 'k' || id, NULL) FROM jobs",
    """INSERT INTO receipts (queue_id, name, key, singleton, job_id, job_created_ms, digest, created_ms, expires_at)
    SELECT 1, 'send', 'k' || id, 0, id, created_ms, x'00', created_ms, :t + iif(id < 70, 0, 9000000000) FROM jobs WHERE state = 5""",
    "INSERT INTO attempts SELECT id, 0, 1, 'w', 0, 0, 2, 't' || id, 2, 1, '', '', '', '' FROM jobs WHERE state = 1",
    "INSERT INTO events (first, at_ms, transitions, body) SELECT id, :t + iif(id < 4, 0, 9000000000), 1, x'90' FROM jobs",
    """INSERT INTO producers (producer_id, seq, answer, used_at)
    SELECT 'p' || id, 1, x'', :t + iif(id < 40, 0, 9000000000) FROM jobs WHERE id % 10 = 0""",
    "UPDATE jobs SET scheduler_id = 1, scheduler = 'allow', tick_ms = id WHERE state = 5",
    "INSERT INTO ticks SELECT 1, id, iif(id < 40, 0, :t + 9000000000), id FROM jobs",
    "INSERT INTO triggers SELECT 1, 'k' || id, id, created_ms, NULL, iif(id < 40, 0, :t + 9000000000) FROM jobs",
    "INSERT INTO counts (id, jobs) SELECT queue_id * 16 + state, count(*) FROM jobs GROUP BY queue_id, state",
    "UPDATE queues SET max_completed = (SELECT count(*) + 10 FROM jobs WHERE state = 5)",
    "UPDATE engine SET now_ms = :t, next_number = :jobs + 1, next_event = :jobs + 1",
)


class Measured:
    """A connection that notes the steps of each statement; see driver.Connection."""

    def __init__(self, inner: Connection) -> None:
        self._connection = inner
        self._names = {found.text: name for name, found in statements.load().items()}
        self.noted: list[tuple[str, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, args: Sequence[Any] = ()) -> list[Any]:
        """Run it, and ask for its steps while its cursor lives."""
        cursor = self._connection._inner.execute(sql, tuple(args))
        rows = cursor.fetchall() or []
        if sql in self._names:
            ((steps,),) = self._connection.execute("SELECT nstep FROM sqlite_stmt WHERE sql = ?", (sql,))
            self.noted.append((self._names[sql], steps))
        return rows


def filled(folder: Path, jobs: int) -> None:
    """Lay down a file with so many jobs: of 20 one has ended, 10 are delayed; a few of everything are due for removal."""
    (folder / "db").mkdir(parents=True)
    connection = Connection(folder / "db" / "anvilmq.db")
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    migrate.migrate(connection, migrate.steps())
    connection.execute("BEGIN")
    for text in FILL:
        connection.execute(text.replace(":t", str(START_MS)).replace(":jobs", str(jobs)))
    connection.execute("COMMIT")
    connection.close()


def measured(folder: Path, jobs: int) -> Steps:
    """What everything that a broker does costs in a store of so many jobs."""
    filled(folder, jobs)
    driver = StoreDriver(lambda: LibsqlStore(folder, chance=SeededChance()), FakeClock())
    store = driver.store
    assert isinstance(store, LibsqlStore)
    assert store._sql is not None
    noting = Measured(store._sql.connection)
    store._sql.connection = noting  # type: ignore[assignment]
    opening.describe(store._sql, opening.take_over(store._sql), {})
    store._sql.connection.execute("UPDATE engine SET epoch = epoch - 1")
    steps: Steps = {"start": noting.noted}
    noting.noted = []
    for name in plays(driver):
        steps[name], noting.noted = noting.noted, []
    assert store.violations() == []
    store.stop()
    return steps


def plays(store: StoreDriver) -> Iterator[str]:
    """Everything a broker does; after each thing, its name."""
    post = new_job("post")
    store.add(*(new_job() for _ in range(10)), post, new_job(delay_ms=50), new_job(lifo=True), new_job(priority=5))
    yield "add plain jobs"
    store.add(*(new_job("post", key=f"new{n}", policy=policy(max_attempts=5)) for n in range(5)))
    store.send(commands.AddJobs([new_job("post", key="s", singleton=True, headers={"h": "v"}, labels={"l": "v"})]))
    yield "add jobs with keys and options"
    store.send(commands.AddJobs([post], producer_id="me", seq=1))
    store.send(commands.AddJobs([post], producer_id="me", seq=1))
    yield "add as a producer, twice"
    store.add(new_job("fresh"), idle=bundles.slots(1))
    store.add(new_job("fresher"), new_job("freshest"), idle=bundles.slots(2))
    yield "start directly"
    running = store.claim(20)
    claimed = store.send(commands.Claim(bundles.identity(), ["post"], 9, claim_id="c"))
    assert store.send(commands.Claim(bundles.identity(), ["post"], 9, claim_id="c")) == claimed
    yield "claim"
    store.settle(*(complete(one, b"r") for one in running[:8]), *map(complete, claimed.deliveries))
    yield "complete"
    store.settle(*map(fail, running[8:10]))
    store.settle(release(running[10]), release(running[11], delay_ms=5), complete(running[0]), fail(running[0]))
    yield "fail, release, repeat"
    lines = [commands.LogLine(1, "info", "x")] * 100
    for _ in range(11):
        store.send(commands.Report(bundles.lease(running[12]), "1", lines))
    yield "report"
    parked = bundles.ref(running[11])
    store.clock.advance(10)
    store.reap(stalled=[bundles.lease(running[13])], undelivered=[bundles.lease(running[14])], parked=[parked])
    yield "reap"
    store.cancel(bundles.ref(running[15]))
    store.cancel(parked)
    yield "cancel"
    store.send(commands.DeleteReceipt("mail", "send", "k80"))
    yield "free a receipt"
    for _ in range(2):
        opened = store.store.begin(store.now_ms)
        opened.next_ready_at("mail")
        opened.rollback()
    yield "look for the next due time"
    for query in queries(parked):
        store.query(query)
    store.query(commands.GetJob(store.add(*(new_job("few", priority=n % 2) for n in range(9)))[7], wait=True))
    yield "query"
    assert store.prune().jobs == 0
    yield "prune, with nothing to remove"
    own = policy(retain_completed_ms=0)
    store.add(*(new_job("own", key=f"o{n}", policy=own) for n in range(3)))
    store.settle(*map(complete, store.claim(3, "own")))
    yield "complete jobs with a retention of their own"
    store.settle(*map(complete, store.claim(20)))
    assert store.prune().jobs == 3 + 18
    yield "prune what is too many"
    store.clock.advance(90_000_000)
    pruned = store.prune()
    assert pruned.rows > pruned.jobs + 8
    yield "prune what is too old"
    store.clock.advance(9_000_000_000)
    assert store.prune(20).more
    yield "prune a slice of much"
    store.clock.set_wall(store.now_ms - HOUR)
    store.next_ready_at()
    yield "set the clock back"
    yield from plays_of_definitions(store)


def plays_of_definitions(store: StoreDriver) -> Iterator[str]:
    """Everything about recurring definitions; the first of them has ticks and triggers for each job of the file."""
    owner = commands.Owner("JobScheduler", "team", "r", "u1", 1)
    names = {"allow": 1, "forbid": 2, "replace": 3}
    uids = []
    for name, policy_of in names.items():
        spec = commands.SchedulerSpec(every_ms=HOUR, concurrency_policy=policy_of, job=new_job("runs"))
        uids.append(store.send(commands.UpsertScheduler(name, spec)).scheduler.uid)
        store.send(commands.UpsertScheduler(name, spec, owner, adopt=True))
    yield "define, adopt"
    for _ in range(2):
        store.send(commands.TriggerScheduler("allow", "new"))
    yield "trigger, repeat"
    for _ in range(2):
        store.clock.advance(HOUR)
        store.send(commands.FireDue(uids, store.now_ms))
        store.send(commands.FireDue(uids, store.now_ms))
    yield "fire, repeat"
    store.query(commands.GetScheduler("allow"))
    store.query(commands.ListSchedulers("a"))
    store.query(commands.ListSchedulers(after="b"))
    store.query(commands.ListDefinitions("team", "JobScheduler"))
    yield "ask for definitions"
    store.send(commands.ReleaseDefinition("allow", owner))
    store.send(commands.SuspendScheduler("allow", True))
    store.send(commands.SuspendScheduler("allow", False))
    store.send(commands.ReanchorSchedulers())
    store.send(commands.DeleteScheduler("allow"))
    yield "release, suspend, count anew, delete"


def queries(job: commands.JobRef) -> Iterator[commands.Query]:
    """Each query that a store answers; lists without a total, which counts up to a bound."""
    yield commands.GetJob(job, full=True, wait=True)
    yield commands.GetJob(job, full=False)
    yield commands.ListJobLogs(job)
    yield commands.GetReceipt("mail", "send", "k100")
    yield commands.ListReceipts("mail", limit=5)
    yield commands.ListReceipts("mail", "send", "k1", limit=5)
    for oldest_first, after in ((True, 0), (False, 1 << 50)):
        for wanted in (commands.JobFilter(), commands.JobFilter(queue="mail", states=[5])):
            yield commands.ListJobs(wanted, 5, after, oldest_first)


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> tuple[Steps, Steps]:
    """The same things done in a small store and in a large one."""
    folder = tmp_path_factory.mktemp("cost")
    return measured(folder / "small", 1_000), measured(folder / "large", 100_000)


def test_nothing_costs_more_in_a_store_of_100_000_jobs_than_in_one_of_1_000(steps: tuple[Steps, Steps]) -> None:
    small, large = steps
    differing = {
        what: [pair for pair in zip(small[what], large[what], strict=False) if pair[0] != pair[1]]
        for what in small
        if small[what] != large[what]
    }
    assert differing == {}


def test_every_hot_statement_was_measured(steps: tuple[Steps, Steps]) -> None:
    measured_names = {name for noted in steps[0].values() for name, _ in noted}
    assert sorted(name for name in statements.load() if hot(name) and name not in measured_names) == []


def test_nothing_that_a_broker_does_leaves_the_log_pinned(tmp_path: Path) -> None:
    filled(tmp_path, 1_000)
    driver = StoreDriver(lambda: LibsqlStore(tmp_path, chance=SeededChance()), FakeClock())
    assert isinstance(driver.store, LibsqlStore)
    connection = driver.store._open_sql().connection
    pinned = [did for did in plays(driver) if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)") != [(0, 0, 0)]]
    driver.store.stop()
    assert pinned == []


def test_a_walk_of_the_table_would_be_seen(tmp_path: Path) -> None:
    noted = []
    for jobs in (100, 200):
        filled(tmp_path / str(jobs), jobs)
        connection = Measured(Connection(tmp_path / str(jobs) / "db" / "anvilmq.db"))
        connection._names = {"SELECT count(*) FROM jobs WHERE name = 1": "walk"}
        connection.execute("SELECT count(*) FROM jobs WHERE name = 1")
        noted += connection.noted
        connection.close()
    assert noted[0] != noted[1]
