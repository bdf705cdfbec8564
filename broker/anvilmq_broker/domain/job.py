"""A job's hot state and every decision about it: pure functions from (job, what happened, moment) to a Change.

The stores load a Job, ask here, and save the Change; what a rule means stands once, in this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from anvilmq_broker.domain import backoff, commands, events
from anvilmq_broker.domain.state import TRANSITIONS, AttemptOutcome, FinishReason, SettleOutcome, State

FRONT_READY_AT: Final = 0
"""`ready_at_ms` of a job at the front of its class; its `ready_seq` then falls with each such placement."""


class Moment(msgspec.Struct, frozen=True):
    """What a decision may draw on: the batch's time in ms, jitter in [0, 1), the next falling number for the front."""

    now_ms: int
    spread: Callable[[], float]
    front: Callable[[], int]


class Origin(msgspec.Struct, frozen=True):
    """The definition whose tick or trigger made a job. number: the store's own, never used again."""

    number: int
    scheduler: str
    tick_ms: int


class Job(msgspec.Struct, frozen=True):
    """The narrow row of a job.

    run_at_ms: due or arrival time. ready_at_ms, ready_seq: place in the queue's line, None = out of it (active,
    terminal, parked). token: set exactly while active. last_*: the settlement that ended the last settled attempt, for
    its replay. expires_at_ms, timeout_at_ms, started_at_ms, finished_at_ms, finish_reason: 0 = none. caused_by: the run
    that took the place of this one.
    """

    number: int
    created_ms: int
    queue: str
    name: str
    state: State
    priority: int
    run_at_ms: int
    ready_at_ms: int | None
    ready_seq: int | None
    policy: commands.Policy
    expires_at_ms: int = 0
    attempt: int = 0
    starts: int = 0
    stalled: int = 0
    token: str | None = None
    worker_id: str = ""
    claim_id: str = ""
    started_at_ms: int = 0
    timeout_at_ms: int = 0
    finished_at_ms: int = 0
    finish_reason: int = 0
    finish_message: str = ""
    cancel_requested: bool = False
    last_token: str = ""
    last_outcome: int = 0
    last_state: int = 0
    key: str = ""
    singleton: bool = False
    revision: int = 0
    origin: Origin | None = None
    caused_by: commands.JobRef | None = None

    @property
    def scheduler(self) -> str:
        """Name of the definition that made it, "" when none did."""
        return self.origin.scheduler if self.origin else ""

    @property
    def terminal(self) -> bool:
        """Whether the job has ended."""
        return self.state >= State.COMPLETED

    @property
    def due_at_ms(self) -> int:
        """The job's own due time, 0 when it has none."""
        return self.run_at_ms if self.run_at_ms > self.created_ms else 0

    @property
    def ref(self) -> commands.JobRef:
        """Its name inside the broker."""
        return commands.JobRef(self.number, self.created_ms)


class AttemptEnd(msgspec.Struct, frozen=True):
    """An attempt that ended other than by completion. settle_outcome: 0 when no worker settled it."""

    record: commands.AttemptRecord
    token: str
    settle_outcome: int = 0
    answer_state: int = 0


class Change(msgspec.Struct, frozen=True):
    """What a decision came to: the job afterwards, the attempt that ended with it, the event to log."""

    before: Job
    job: Job
    event: events.Kind
    attempt_end: AttemptEnd | None = None
    attempt_outcome: int = 0
    result: bytes = b""
    result_content_type: str = ""

    @property
    def ended(self) -> bool:
        """Whether the job became terminal by it."""
        return self.job.terminal and not self.before.terminal

    def tell(self, log: events.Log) -> None:
        """Append the event to the transaction's log."""
        job, end = self.job, self.attempt_end
        error = end.record.error if end else None
        log.add(
            self.event,
            job.queue,
            job.name,
            job.state,
            self.before.state,
            job.number,
            job.created_ms,
            self.before.attempt if end else job.attempt,
            self.before.worker_id if self.before.token else "",
            job.finish_reason,
            job.run_at_ms if job.state is State.DELAYED else 0,
            error=(error.type, error.message) if error else None,
        )


def merge_policy(patch: commands.PolicyPatch | None, queue: commands.PolicyPatch | None) -> commands.Policy:
    """The options in effect: the job's, else the queue's, else the broker's defaults [1.6, 9.23].

    max_starts is raised to max_attempts unless the job sets it (it is then checked at the border).
    """
    if patch is None and queue is None:
        return DEFAULT_POLICY
    values = {
        name: value
        for source in (queue, patch)
        if source is not None
        for name in commands.PolicyPatch.__struct_fields__
        if (value := getattr(source, name)) is not None
    }
    policy = commands.Policy(**values)
    if policy.max_starts < policy.max_attempts:
        policy = replace(policy, max_starts=policy.max_attempts)
    return policy


DEFAULT_POLICY: Final = commands.Policy()


def create(
    new: commands.NewJob, number: int, policy: commands.Policy, moment: Moment, origin: Origin | None = None
) -> Job:
    """The job that an add, or a definition, makes: waiting, or delayed until its own due time [1.3]."""
    now = moment.now_ms
    run_at = max(new.run_at_ms, now + new.delay_ms)
    expires = new.expires_at_ms or (now + new.expires_after_ms if new.expires_after_ms else 0)
    return Job(
        number=number,
        created_ms=now,
        queue=new.queue,
        name=new.name,
        state=State.DELAYED if run_at > now else State.WAITING,
        priority=new.priority,
        run_at_ms=run_at,
        ready_at_ms=FRONT_READY_AT if new.lifo else run_at,
        ready_seq=moment.front() if new.lifo else number,
        policy=policy,
        expires_at_ms=expires,
        key=new.key,
        singleton=new.singleton,
        origin=origin,
    )


def start(job: Job, token: str, worker_id: str, claim_id: str, now_ms: int) -> Job:
    """The job after a claim: active, the attempt counted, out of the line, with a fresh lease token [1.4]."""
    timeout = job.policy.attempt_timeout_ms
    return _move(
        job,
        State.ACTIVE,
        ready_at_ms=None,
        ready_seq=None,
        attempt=job.attempt + 1,
        starts=job.starts + 1,
        token=token,
        worker_id=worker_id,
        claim_id=claim_id,
        started_at_ms=now_ms,
        timeout_at_ms=now_ms + timeout if timeout else 0,
    )


def settle(job: Job, item: commands.Settlement, moment: Moment) -> Change:
    """The end of the attempt whose token the caller has checked [1.6, 1.7, 1.9]. A cancelled job ends whatever is said."""
    match item.outcome:
        case SettleOutcome.COMPLETE:
            return _complete(job, item, moment)
        case SettleOutcome.FAIL:
            return _fail(job, item, moment)
        case _:
            return _release(job, item, moment)


def answer_to_replay(job: Job, item: commands.Settlement) -> int | None:
    """The state first answered to this token and kind of outcome, or None: the lease is lost [1.4, 9.3]."""
    if job.last_token == item.token and job.last_outcome == item.outcome:
        return job.last_state
    return None


def stall(job: Job, moment: Moment) -> Change:
    """The lease ran out: back to the head of its class, the attempt given back, unless it stalls too often [1.5]."""
    given_back = replace(job, attempt=job.attempt - 1, stalled=job.stalled + 1)
    if job.cancel_requested:
        after = _end(given_back, State.CANCELLED, _cancel_reason(job), moment.now_ms)
    elif given_back.stalled > job.policy.max_stalled:
        after = _end(given_back, State.FAILED, FinishReason.STALLED, moment.now_ms)
    elif job.starts >= job.policy.max_starts:
        after = _end(given_back, State.FAILED, FinishReason.MAX_STARTS, moment.now_ms)
    else:
        after = _to_front(given_back, moment)
    event = events.Kind.STALLED if not after.terminal else _event_of_end(after)
    return _attempt_ended(job, after, event, AttemptOutcome.STALLED, moment)


def time_out(job: Job, moment: Moment) -> Change:
    """The attempt ran longer than attempt_timeout: a failed try, however alive its worker is [1.4]."""
    if job.cancel_requested:
        after = _end(job, State.CANCELLED, _cancel_reason(job), moment.now_ms)
    elif job.attempt >= job.policy.max_attempts:
        after = _end(job, State.FAILED, FinishReason.ATTEMPT_TIMEOUT, moment.now_ms)
    elif job.starts >= job.policy.max_starts:
        after = _end(job, State.FAILED, FinishReason.MAX_STARTS, moment.now_ms)
    else:
        after = _to_due(job, _backoff_ms(job, moment), moment)
    event = events.Kind.RETRYING if not after.terminal else _event_of_end(after)
    return _attempt_ended(job, after, event, AttemptOutcome.TIMED_OUT, moment)


def undeliver(job: Job, moment: Moment) -> Change:
    """The claim never reached its worker: as if it had not been made, at the head of the class [api 3.4]."""
    before = replace(job, attempt=job.attempt - 1, starts=job.starts - 1)
    if job.cancel_requested:
        after = _end(before, State.CANCELLED, _cancel_reason(job), moment.now_ms)
        return Change(job, after, events.Kind.CANCELLED)
    return Change(job, _to_front(before, moment), events.Kind.RELEASED)


def unpark(job: Job, moment: Moment) -> Change | None:
    """A released job's delay is over: to the front of its class [1.7]. None when it is no longer parked."""
    if job.state is not State.DELAYED or job.ready_at_ms is not None or job.run_at_ms > moment.now_ms:
        return None
    return Change(job, _to_front(job, moment), events.Kind.RELEASED)


def expire(job: Job, now_ms: int) -> Change | None:
    """Cancel a job that has not started by its expiry [1.9]. None when that does not concern it (any more)."""
    if job.starts or job.terminal or not job.expires_at_ms or job.expires_at_ms > now_ms:
        return None
    return Change(job, _end(job, State.CANCELLED, FinishReason.EXPIRED, now_ms), events.Kind.CANCELLED)


def cancel(job: Job, reason: str, now_ms: int, caused_by: commands.JobRef | None = None) -> Change | None:
    """Cancel from any state: at once, or by asking the worker that holds the lease [1.9]. None: nothing to do.

    caused_by: the run that takes its place [6.6]; the finish reason is then REPLACED.
    """
    if job.terminal or job.cancel_requested:
        return None
    asked = replace(job, finish_message=reason, caused_by=caused_by)
    if job.state is State.ACTIVE:
        return Change(job, replace(asked, cancel_requested=True), events.Kind.CANCEL_REQUESTED)
    after = _end(asked, State.CANCELLED, _cancel_reason(asked), now_ms)
    return Change(job, after, events.Kind.CANCELLED)


def prune_at_ms(job: Job) -> int | None:
    """When an ended job's own retention removes it; None: the queue's retention does [1.12]."""
    policy = job.policy
    own = policy.retain_completed_ms if job.state is State.COMPLETED else policy.retain_failed_ms
    return None if own is None else job.finished_at_ms + own


def _complete(job: Job, item: commands.Settlement, moment: Moment) -> Change:
    if job.cancel_requested:
        return _settled_as_cancelled(job, item, moment)
    after = _end(_settled(job, item), State.COMPLETED, FinishReason.COMPLETED, moment.now_ms)
    return Change(
        job,
        replace(after, last_state=after.state),
        events.Kind.COMPLETED,
        attempt_outcome=AttemptOutcome.COMPLETED,
        result=item.result,
        result_content_type=item.result_content_type,
    )


def _fail(job: Job, item: commands.Settlement, moment: Moment) -> Change:
    if job.cancel_requested:
        return _settled_as_cancelled(job, item, moment)
    settled = _settled(job, item)
    if item.non_retryable:
        after = _end(settled, State.FAILED, FinishReason.NON_RETRYABLE, moment.now_ms)
    elif job.attempt >= job.policy.max_attempts:
        after = _end(settled, State.FAILED, FinishReason.ATTEMPTS_EXHAUSTED, moment.now_ms)
    elif job.starts >= job.policy.max_starts:
        after = _end(settled, State.FAILED, FinishReason.MAX_STARTS, moment.now_ms)
    else:
        delay = item.retry_after_ms if item.retry_after_ms is not None else _backoff_ms(job, moment)
        after = _to_due(settled, delay, moment)
    event = events.Kind.RETRYING if not after.terminal else events.Kind.FAILED
    return _attempt_ended(job, after, event, AttemptOutcome.FAILED, moment, item)


def _release(job: Job, item: commands.Settlement, moment: Moment) -> Change:
    if job.cancel_requested:
        return _settled_as_cancelled(job, item, moment)
    given_back = replace(_settled(job, item), attempt=job.attempt - 1)
    if job.starts >= job.policy.max_starts:
        after = _end(given_back, State.FAILED, FinishReason.MAX_STARTS, moment.now_ms)
    elif item.delay_ms:
        after = _park(given_back, moment.now_ms + item.delay_ms)
    else:
        after = _to_front(given_back, moment)
    event = events.Kind.RELEASED if not after.terminal else events.Kind.FAILED
    return _attempt_ended(job, after, event, AttemptOutcome.RELEASED, moment, item)


def _settled_as_cancelled(job: Job, item: commands.Settlement, moment: Moment) -> Change:
    after = _end(_settled(job, item), State.CANCELLED, _cancel_reason(job), moment.now_ms)
    return _attempt_ended(job, after, events.Kind.CANCELLED, AttemptOutcome.CANCELLED, moment, item)


def _settled(job: Job, item: commands.Settlement) -> Job:
    return replace(job, last_token=item.token, last_outcome=item.outcome)


def _attempt_ended(
    before: Job,
    after: Job,
    event: events.Kind,
    outcome: AttemptOutcome,
    moment: Moment,
    item: commands.Settlement | None = None,
) -> Change:
    record = commands.AttemptRecord(
        before.attempt,
        before.starts,
        before.worker_id,
        before.started_at_ms,
        moment.now_ms,
        outcome,
        _error_of(item),
    )
    if item is not None:
        after = replace(after, last_state=after.state)
    end = AttemptEnd(record, before.token or "", item.outcome if item else 0, after.state if item else 0)
    return Change(before, after, event, attempt_end=end, attempt_outcome=outcome)


def _error_of(item: commands.Settlement | None) -> commands.ErrorInfo | None:
    if item is None:
        return None
    if item.outcome == SettleOutcome.RELEASE and item.reason:
        return commands.ErrorInfo("", item.reason)
    return item.error


def _backoff_ms(job: Job, moment: Moment) -> int:
    return backoff.next_delay_ms(job.policy.backoff, job.attempt, moment.spread())


def _cancel_reason(job: Job) -> FinishReason:
    return FinishReason.CANCEL_REQUESTED if job.caused_by is None else FinishReason.REPLACED


def _event_of_end(job: Job) -> events.Kind:
    return events.Kind.CANCELLED if job.state is State.CANCELLED else events.Kind.FAILED


def _to_due(job: Job, delay_ms: int, moment: Moment) -> Job:
    due = moment.now_ms + delay_ms
    state = State.DELAYED if delay_ms else State.WAITING
    return _leave(job, state, run_at_ms=due, ready_at_ms=due, ready_seq=job.number)


def _to_front(job: Job, moment: Moment) -> Job:
    return _leave(job, State.WAITING, run_at_ms=moment.now_ms, ready_at_ms=FRONT_READY_AT, ready_seq=moment.front())


def _park(job: Job, until_ms: int) -> Job:
    return _leave(job, State.DELAYED, run_at_ms=until_ms, ready_at_ms=None, ready_seq=None)


def _end(job: Job, state: State, reason: FinishReason, now_ms: int) -> Job:
    return _leave(job, state, ready_at_ms=None, ready_seq=None, finished_at_ms=now_ms, finish_reason=int(reason))


def _leave(job: Job, state: State, **changes: object) -> Job:
    """Away from whatever attempt was running: the token dies with it."""
    return _move(job, state, token=None, claim_id="", timeout_at_ms=0, **changes)


def _move(job: Job, state: State, **changes: object) -> Job:
    assert state is job.state or state in TRANSITIONS[job.state], (job.state, state)
    return replace(job, state=state, **changes)
