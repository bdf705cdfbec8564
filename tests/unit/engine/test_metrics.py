"""Counting, merging, and the text that Prometheus reads."""

from prometheus_client.parser import text_string_to_metric_families

from anvilmq_broker.engine import metrics
from anvilmq_broker.engine.chance import SystemChance
from anvilmq_broker.engine.metrics import Counter, Gauge, Histogram, QueueNames
from tests.support import bundles
from tests.unit.engine.rig import Rig


def test_snapshots_of_several_processes_are_added_up() -> None:
    one, other = Counter("c_total", "Counts.", "queue"), Counter("c_total", "Counts.", "queue")
    one.add(("mail",))
    one.add(("mail",), 2)
    other.add(("mail",), 4)
    other.add(("images",))
    (merged,) = metrics.merge([[one.family()], [other.family()]])
    assert {tuple(sample.labels): sample.value for sample in merged.samples} == {("mail",): 7, ("images",): 1}


def test_histograms_are_added_up_bucket_by_bucket() -> None:
    one, other = Histogram("h", "Times."), Histogram("h", "Times.")
    one.observe(0.001)
    one.observe(7200)
    other.observe(0.5)
    (merged,) = metrics.merge([[one.family()], [other.family()]])
    assert sum(merged.samples[0].buckets) == 3
    assert merged.samples[0].buckets[0] == 1
    assert merged.samples[0].buckets[-1] == 1


def test_the_text_is_read_back_by_a_parser_as_it_was_meant() -> None:
    gauge, histogram = Gauge("g", "A gauge.", "name"), Histogram("h_seconds", "Times.", "queue")
    gauge.set(1.5, ('a "quoted" \\ name\n',))
    for value in (0.001, 0.002, 4.0):
        histogram.observe(value, ("mail",))
    text = metrics.render([gauge.family(), histogram.family()])
    parsed = {family.name: family for family in text_string_to_metric_families(text)}
    assert parsed["g"].samples[0].labels == {"name": 'a "quoted" \\ name\n'}
    assert parsed["g"].samples[0].value == 1.5
    by_bound = {s.labels["le"]: s.value for s in parsed["h_seconds"].samples if s.name == "h_seconds_bucket"}
    assert (by_bound["0.001"], by_bound["0.0025"], by_bound["5"], by_bound["+Inf"]) == (1, 2, 3, 3)
    assert [s.value for s in parsed["h_seconds"].samples if s.name == "h_seconds_count"] == [3]


def test_queues_beyond_two_hundred_are_counted_together() -> None:
    names = QueueNames()
    labels = [names(f"q{number}") for number in range(300)]
    assert labels[199] == "q199"
    assert set(labels[200:]) == {"_other"}
    assert names("q5") == "q5"


async def test_a_job_leaves_its_marks() -> None:
    async with Rig() as rig:
        worker = await rig.working()
        await rig.add_one(key="k")
        await rig.add_one(key="k")
        await rig.engine.advance(2_000)
        await rig.settle(bundles.complete(worker.deliveries[0]))
        assert rig.metric("anvilmq_jobs_added_total", bundles.QUEUE, "api") == 1
        assert rig.metric("anvilmq_jobs_existing_total", bundles.QUEUE, "receipt") == 1
        assert rig.metric("anvilmq_attempts_total", bundles.QUEUE, "completed") == 1
        assert rig.metric("anvilmq_jobs_finished_total", bundles.QUEUE, "completed", "completed") == 1
        assert rig.metric("anvilmq_jobs", bundles.QUEUE, "completed") == 1
        assert rig.metric("anvilmq_job_wait_seconds", bundles.QUEUE) == 1
        assert rig.metric("anvilmq_job_run_seconds", bundles.QUEUE) == 1
        assert rig.metric("anvilmq_workers", bundles.QUEUE, "working") == 1
        assert rig.metric("anvilmq_worker_slots", bundles.QUEUE, "open") == 9
        assert rig.metric("anvilmq_store_batch_commands") > 0


async def test_a_delayed_job_is_measured_from_its_due_time() -> None:
    async with Rig() as rig:
        await rig.add_one(delay_ms=10_000)
        await rig.engine.advance(15_000)
        await rig.working()
        assert rig.metric("anvilmq_job_due_lag_seconds", bundles.QUEUE) == 1
        (family,) = [one for one in rig.engine.snapshot() if one.name == "anvilmq_job_due_lag_seconds"]
        assert family.samples[0].value == 5.0


async def test_an_attempt_that_was_never_delivered_counts_nowhere() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=1)
        await rig.add_one()
        worker.close()
        rig.worker().open()
        await rig.engine.settle()
        assert rig.metric("anvilmq_attempts_total", bundles.QUEUE, "released") == 0
        (family,) = [one for one in rig.engine.snapshot() if one.name == "anvilmq_attempts_total"]
        assert family.samples == []


def test_tokens_are_long_texts_that_never_come_twice() -> None:
    chance = SystemChance()
    tokens = {chance.token() for _ in range(1_000)}
    assert len(tokens) == 1_000
    assert {len(token) for token in tokens} == {24}
    assert all(0 <= chance.spread() < 1 for _ in range(100))
