"""What gateways send: decoded, carried out where it is memory's alone, handed to the loop where it must be written.

Hot file: terse on purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast, get_args

import msgspec

from anvilmq_broker.clock import Clock
from anvilmq_broker.domain import commands, errors
from anvilmq_broker.engine import link
from anvilmq_broker.engine.link_server import Hub, Peer
from anvilmq_broker.engine.memory import Memory
from anvilmq_broker.engine.telemetry import Telemetry
from anvilmq_broker.engine.turn import Item, Turn

CHUNK_ITEMS: Final = 256
"""Jobs or settlements applied between two looks at the clock."""
MAX_BYTES: Final = 8 << 20
"""Bytes of frames taken in one turn."""
_QUERIES: Final = get_args(commands.Query)


class Inbox:
    """Takes frames from the hub."""

    def __init__(self, hub: Hub, memory: Memory, clock: Clock, telemetry: Telemetry) -> None:
        self._hub = hub
        self._memory = memory
        self._clock = clock
        self._telemetry = telemetry
        self._handlers: dict[type, Callable[[Peer, int, Any, Turn], Item | None]] = {
            commands.Renew: self._renew,
            commands.OpenSession: self._open_session,
            commands.AddCredit: self._add_credit,
            commands.DrainSession: self._drain_session,
            commands.CloseSession: self._close_session,
            commands.Undeliver: self._undeliver,
            commands.SessionSeen: self._seen,
            commands.DrainWorker: self._drain_worker,
            commands.Claim: self._claim,
            link.Forget: self._forget,
            **dict.fromkeys(_QUERIES, self._query),
        }

    def take(self, turn: Turn) -> list[Item]:
        """The commands of the next frames, as many as are applied at once; empty when no frame waits.

        Reports come first, then settlements. Nobody has an answer to any of these yet, so their order is ours, and what
        one connection sent of one kind keeps its own. Settlements free slots, and are cheapest in one run; an attempt's
        last words are sent before its settlement, and behind it their token would be dead.
        """
        reports: list[Item] = []
        settlements: list[Item] = []
        others: list[Item] = []
        size, handlers, hub = 0, self._handlers, self._hub
        while size < CHUNK_ITEMS and turn.bytes < MAX_BYTES and (frame := hub.take()) is not None:
            peer, payload = frame
            turn.bytes += len(payload)
            try:
                call, message = link.decode_message(payload)
            except link.Breach as breach:
                self._telemetry.gateway_breach(peer.id, breach)
                hub.drop(peer)
                continue
            if isinstance(message, commands.AddJobs):
                others.append(Item(peer, call, message))
                size += len(message.jobs)
            elif isinstance(message, commands.Settle):
                settlements.append(Item(peer, call, message))
                size += len(message.items)
            elif isinstance(message, commands.Report):
                reports.append(Item(peer, call, message))
                size += 1
            else:
                size += 1
                handler = handlers.get(type(message))
                if handler is None:
                    others.append(Item(peer, call, cast("commands.Command", message)))
                elif (item := handler(peer, call, message, turn)) is not None:
                    others.append(item)
        turn.size += size
        return [*reports, *settlements, *others]

    def _query(self, peer: Peer, call: int, message: commands.Query, turn: Turn) -> None:
        self._memory.queries.append((peer, call, message))

    def _renew(self, peer: Peer, call: int, message: commands.Renew, turn: Turn) -> None:
        renew, worker_id = self._memory.sessions.renew, message.worker_id
        interrupts = [found for ref in message.leases if (found := renew(ref, worker_id)) is not None]
        turn.answers.append((peer, call, commands.Renewed(interrupts)))

    def _open_session(self, peer: Peer, call: int, message: commands.OpenSession, turn: Turn) -> Item | None:
        command = None if peer.closed else self._memory.sessions.open(peer, message, turn.said)
        return None if command is None else Item(None, 0, command)

    def _add_credit(self, peer: Peer, call: int, message: commands.AddCredit, turn: Turn) -> None:
        self._memory.sessions.add_credit(peer, message)

    def _drain_session(self, peer: Peer, call: int, message: commands.DrainSession, turn: Turn) -> None:
        self._memory.sessions.drain(peer, message, turn.said)

    def _close_session(self, peer: Peer, call: int, message: commands.CloseSession, turn: Turn) -> None:
        self._memory.sessions.close(peer, message.session)

    def _undeliver(self, peer: Peer, call: int, message: commands.Undeliver, turn: Turn) -> Item | None:
        held = [ref for ref in message.leases if self._memory.leases.find(ref.token) is not None]
        return Item(None, 0, commands.Reap(undelivered=held)) if held else None

    def _seen(self, peer: Peer, call: int, message: commands.SessionSeen, turn: Turn) -> None:
        self._memory.sessions.seen(peer, message.session)

    def _drain_worker(self, peer: Peer, call: int, message: commands.DrainWorker, turn: Turn) -> None:
        found = self._memory.sessions.ask_to_leave(message, turn.said)
        turn.answers.append((peer, call, commands.Done() if found else _no_worker(message.worker_id)))

    def _forget(self, peer: Peer, call: int, message: link.Forget, turn: Turn) -> None:
        self._memory.claims.forget((peer.id, message.call))
        self._memory.watches.forget((peer.id, message.call))

    def _claim(self, peer: Peer, call: int, message: commands.Claim, turn: Turn) -> Item:
        self._memory.sessions.claimed(message)
        if message.claim_id:
            return Item(peer, call, message)
        # A claim without an id is still no session: its leases must not be taken for one's [9.11].
        claim = msgspec.structs.replace(message, claim_id=f"~{self._clock.wall_ms()}.{peer.id}.{call}")
        return Item(peer, call, claim)


def _no_worker(worker_id: str) -> errors.Refused:
    return errors.Refused(
        "WORKER_NOT_FOUND",
        f"no worker {worker_id!r} has a session; `anvilmq worker list` shows those that have",
        "worker_id",
        {"worker_id": worker_id},
    )
