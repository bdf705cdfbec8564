"""Bounds of what clients may send (api section 6); GetServerInfo tells them."""

from __future__ import annotations

from typing import Final

import msgspec

KIB: Final = 1 << 10
MIB: Final = 1 << 20

MAX_MESSAGE_BYTES: Final = 20 * MIB
MAX_FRAME_BYTES: Final = 4 * MIB
MAX_FRAME_DELIVERIES: Final = 256
MAX_RESULT_BYTES: Final = 256 * KIB
MAX_PROGRESS_BYTES: Final = 64 * KIB
MAX_LOG_LINE_BYTES: Final = 4 * KIB
MAX_LOG_LINES: Final = 100
MAX_LOG_LEVEL_BYTES: Final = 16
MAX_BULK_JOBS: Final = 1_000
MAX_BULK_BYTES: Final = 16 * MIB
MAX_SETTLE_BATCH: Final = 1_000
MAX_CLAIM_JOBS: Final = 256
MAX_PAGE_SIZE: Final = 1_000
DEFAULT_PAGE_SIZE: Final = 100
MAX_ADMIN_BATCH: Final = 1_000
MAX_WAIT_MS: Final = 60_000
MAX_CREDIT: Final = 1_000
MAX_POOLS: Final = 32
MAX_POOL_QUEUES: Final = 64
MAX_REASON_BYTES: Final = KIB
MAX_DESCRIPTION_BYTES: Final = KIB
MAX_PARAMETERS_BYTES: Final = 256 * KIB
MAX_RUN_KEY_BYTES: Final = 120

MAX_NAME_BYTES: Final = 128
MAX_KEY_BYTES: Final = 255
MAX_PRODUCER_ID_BYTES: Final = 64
MAX_LEASE_TOKEN_BYTES: Final = 64
MAX_CONTENT_TYPE_BYTES: Final = 128
MAX_ENTRIES: Final = 32
MAX_HEADER_BYTES: Final = 8 * KIB
MAX_LABEL_KEY_BYTES: Final = 63
MAX_LABEL_VALUE_BYTES: Final = 128

MAX_ERROR_TYPE_BYTES: Final = 255
MAX_ERROR_MESSAGE_BYTES: Final = 4 * KIB
MAX_ERROR_STACK_BYTES: Final = 32 * KIB
MAX_ERROR_DETAILS_BYTES: Final = 16 * KIB

MAX_PRIORITY: Final = 2_097_151
MAX_ATTEMPTS: Final = 1_000
MAX_STALLED: Final = 100
MAX_STARTS: Final = 10_000
MIN_LEASE_MS: Final = 1_000
MAX_LEASE_MS: Final = 3_600_000
MAX_BACKOFF_MS: Final = 7 * 86_400_000
MAX_DURATION_MS: Final = 100 * 365 * 86_400_000
MAX_INSTANT_MS: Final = 253_402_300_799_999
MAX_INTEGER: Final = (1 << 53) - 1


class Limits(msgspec.Struct, frozen=True):
    """The limits that an operator sets. max_payload_bytes: 1 KiB..15 MiB, of one job's data."""

    max_payload_bytes: int = MIB
    max_flow_depth: int = 10
    max_flow_nodes: int = 1_000
    max_flow_bulk: int = 100

    @property
    def least_frame_bytes(self) -> int:
        """The smallest bound of a worker's frames: one job of the largest size must fit."""
        return self.max_payload_bytes + MIB
