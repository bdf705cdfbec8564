"""The executable specification of a store: dicts over the domain, short and obvious before fast.

Values are frozen, so a transaction is undone by putting back what each write replaced. What a rule decides stands in
`domain`; what is written when, and what the engine is told of it, stands here.
"""

from anvilmq_broker.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
