"""Transition → metric and log line; nothing else in the engine logs. Counters are kept, never scanned for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import structlog

from anvilmq_broker.domain.state import AttemptOutcome, FinishReason, State
from anvilmq_broker.engine import metrics
from anvilmq_broker.engine.leases import Lease
from anvilmq_broker.engine.metrics import Counter, Gauge, Histogram, Labels
from anvilmq_broker.engine.sessions import Session, Sessions
from anvilmq_broker.store import protocol

_COMPLETED: Final = int(AttemptOutcome.COMPLETED)
_OUTCOMES: Final = {int(outcome): outcome.name.lower() for outcome in AttemptOutcome}
_REASONS: Final = {int(reason): reason.name.lower() for reason in FinishReason}
_STATES: Final = {int(state): state.name.lower() for state in State}


class Telemetry:
    """What the engine counts and says."""

    def __init__(self) -> None:
        self._log = structlog.get_logger("anvilmq.engine")
        self._queues = metrics.QueueNames()
        self._added = Counter("anvilmq_jobs_added_total", "Jobs added.", "queue", "source")
        self._existing = Counter("anvilmq_jobs_existing_total", "Adds that met an earlier job.", "queue", "matched_by")
        self._finished = Counter(
            "anvilmq_jobs_finished_total", "Jobs that became terminal.", "queue", "state", "reason"
        )
        self._attempts = Counter("anvilmq_attempts_total", "Attempts that ended.", "queue", "outcome")
        self._wait = Histogram(
            "anvilmq_job_wait_seconds", "From arrival or due time to the start of an attempt.", "queue"
        )
        self._run = Histogram("anvilmq_job_run_seconds", "From the start of an attempt to its end.", "queue")
        self._due_lag = Histogram("anvilmq_job_due_lag_seconds", "From a delayed job's due time to its start.", "queue")
        self._ticks = Counter("anvilmq_scheduler_ticks_total", "Ticks of recurring definitions.", "outcome")
        self._tick_lag = Histogram("anvilmq_scheduler_tick_lag_seconds", "From when a tick was due to its firing.")
        self._commit = Histogram("anvilmq_store_commit_seconds", "Duration of a batch's commit.")
        self._batch = Histogram(
            "anvilmq_store_batch_commands", "Commands carried out in a batch.", bounds=metrics.COUNTS
        )
        # Label tuples of a queue, made once: the hot calls then only look up.
        self._queue_labels: dict[str, Labels] = {}
        self._outcome_labels: dict[tuple[str, int], Labels] = {}
        self._finish_labels: dict[tuple[str, int, int], Labels] = {}

    # ------------------------------------------------------------------------------------------------ counts

    def added(self, effect: protocol.Added) -> None:
        """Jobs were added, or items met earlier ones."""
        queue = self._queues(effect.queue)
        if effect.count:
            self._added.add((queue, effect.source), effect.count)
        if effect.existing:
            self._existing.add((queue, "receipt"), effect.existing)

    def ticked(self, effect: protocol.Ticked) -> None:
        """Definitions were due."""
        for outcome, count in (("fired", len(effect.late_ms)), ("skipped", effect.skipped), ("missed", effect.missed)):
            if count:
                self._ticks.add((outcome,), count)
        for late in effect.late_ms:
            self._tick_lag.observe(late / 1000 if late > 0 else 0.0)

    def started(self, starts: Iterable[protocol.Started], now_ms: int) -> None:
        """Attempts have started."""
        # Jobs of a batch share their times: their waits are counted by kind, and observed once a kind.
        waits: dict[tuple[str, int, bool], int] = {}
        for effect in starts:
            delivery, since_ms = effect.delivery, effect.run_at_ms
            created_ms = delivery.created_ms
            if not since_ms:
                if delivery.starts != 1:
                    continue
                since_ms = created_ms
            kind = (delivery.queue, since_ms, effect.run_at_ms > created_ms)
            waits[kind] = waits.get(kind, 0) + 1
        for (queue, since_ms, delayed), count in waits.items():
            labels, waited = self._labels_of(queue), max(0.0, (now_ms - since_ms) / 1000)
            self._wait.observe(waited, labels, count)
            if delayed:
                self._due_lag.observe(waited, labels, count)

    def completed(self, effect: protocol.Completed, now_ms: int) -> None:
        """Attempts have ended, and with each its job, as completed."""
        queue, count = effect.queue, len(effect.jobs)
        self._attempts.add(self._outcome_of(queue, _COMPLETED), count)
        self._finished.add(self._finish_of(queue, State.COMPLETED, FinishReason.COMPLETED), count)
        runs: dict[int, int] = {}
        for _, _, _, started_at_ms in effect.jobs:
            runs[started_at_ms] = runs.get(started_at_ms, 0) + 1
        labels = self._labels_of(queue)
        for started_at_ms, times in runs.items():
            self._run.observe(max(0.0, (now_ms - started_at_ms) / 1000), labels, times)

    def freed(self, effect: protocol.Freed, now_ms: int) -> None:
        """An attempt has ended; one that was never delivered counts nowhere."""
        if not effect.outcome:
            return
        self._attempts.add(self._outcome_of(effect.queue, effect.outcome))
        self._run.observe(max(0.0, (now_ms - effect.started_at_ms) / 1000), self._labels_of(effect.queue))

    def ended(self, effect: protocol.Ended) -> None:
        """A job is terminal."""
        self._finished.add(self._finish_of(effect.queue, effect.state, effect.reason))

    def committed(self, seconds: float, commands: int) -> None:
        """A batch is durable."""
        self._commit.observe(seconds)
        self._batch.observe(commands)

    # ------------------------------------------------------------------------------------------------- lines

    def serving(self, schema_version: int, active: int) -> None:
        """The engine has started."""
        self._log.info("engine_serving", schema_version=schema_version, active_jobs=active)

    def stopped(self) -> None:
        """The engine has stopped in good order."""
        self._log.info("engine_stopped")

    def failed(self, error: Exception) -> None:
        """The engine stops answering and exits."""
        self._log.error("engine_failed", err_type=type(error).__name__, err_message=str(error))

    def lease_ran_out(self, lease: Lease, outcome: int) -> None:
        """An attempt was ended by the broker: its lease ran out, or its time."""
        event = "attempt_timed_out" if outcome == AttemptOutcome.TIMED_OUT else "attempt_stalled"
        self._log.warning(event, queue=lease.queue, job_number=lease.number, worker_id=lease.worker_id)

    def worker_connected(self, session: Session) -> None:
        """A session stands."""
        self._log.info("worker_connected", worker_id=session.worker.worker_id, name=session.worker.name)

    def gateway_lost(self, peer_id: int) -> None:
        """A connection ended."""
        self._log.info("gateway_disconnected", gateway=peer_id)

    def gateway_breach(self, peer_id: int, error: Exception) -> None:
        """A connection spoke what is not the link's language."""
        self._log.error("gateway_breach", gateway=peer_id, err_message=str(error))

    def storage_full(self) -> None:
        """A batch found no room on the volume."""
        self._log.error("storage_full")

    def stood_still(self, ms: float) -> None:
        """The engine was not able to run, or a batch took long."""
        self._log.warning("engine_stood_still", ms=round(ms))

    def stepped_back(self) -> None:
        """The wall clock was set back by more than the broker stands still for."""
        self._log.warning("clock_stepped_back")

    # --------------------------------------------------------------------------------------------- snapshot

    def snapshot(
        self,
        counts: dict[tuple[str, int], int],
        sessions: Sessions,
        held: Iterable[Lease],
        definitions: dict[str, int],
    ) -> metrics.Snapshot:
        """Everything counted, and what stands now."""
        jobs = Gauge("anvilmq_jobs", "Jobs by stored state.", "queue", "state")
        for (queue, state), number in counts.items():
            jobs.add((self._queues(queue), _STATES[state]), number)
        schedulers = Gauge("anvilmq_schedulers", "Recurring definitions.", "state")
        for standing, number in definitions.items():
            schedulers.set(number, (standing,))
        families: list[Counter | Histogram] = [
            jobs,
            *self._worker_gauges(sessions, held),
            self._added,
            self._existing,
            self._finished,
            self._attempts,
            self._wait,
            self._run,
            self._due_lag,
            schedulers,
            self._ticks,
            self._tick_lag,
            self._commit,
            self._batch,
        ]
        return [family.family() for family in families]

    def _worker_gauges(self, sessions: Sessions, held: Iterable[Lease]) -> list[Gauge]:
        workers = Gauge("anvilmq_workers", "Sessions with a pool for the queue.", "queue", "state")
        slots = Gauge(
            "anvilmq_worker_slots", "Slots by use; open ones count for each queue of their pool.", "queue", "state"
        )
        for queue, session in sessions.by_queue():
            workers.add((self._queues(queue), "draining" if session.draining else "working"))
        for queue, credit in sessions.credit_by_queue():
            slots.add((self._queues(queue), "open"), credit)
        for lease in held:
            slots.add((self._queues(lease.queue), "busy"))
        return [workers, slots]

    def _outcome_of(self, queue: str, outcome: int) -> Labels:
        labels = self._outcome_labels.get((queue, outcome))
        if labels is None:
            labels = self._outcome_labels[queue, outcome] = (self._queues(queue), _OUTCOMES[outcome])
        return labels

    def _finish_of(self, queue: str, state: int, reason: int) -> Labels:
        labels = self._finish_labels.get((queue, state, reason))
        if labels is None:
            told = (self._queues(queue), _STATES[state], _REASONS.get(reason, "unspecified"))
            labels = self._finish_labels[queue, state, reason] = told
        return labels

    def _labels_of(self, queue: str) -> Labels:
        labels = self._queue_labels.get(queue)
        if labels is None:
            labels = self._queue_labels[queue] = (self._queues(queue),)
        return labels
