"""No sequence of commands makes a store break a promise: random histories against the memory store.

ANVILMQ_MODEL_RUNS sets the number of histories (a long run: 20000), ANVILMQ_MODEL_SEED another seed than 0.
"""

import os
from typing import Final

import hypothesis
import pytest
from hypothesis import HealthCheck, stateful

from tests.support.rules import rule
from tests.unit.conformance.model import StoreMachine
from tests.unit.conformance.model_schedulers import SchedulerMachine

RUNS: Final = int(os.environ.get("ANVILMQ_MODEL_RUNS", "200"))
SEED: Final = int(os.environ.get("ANVILMQ_MODEL_SEED", "0"))
STEPS: Final = 60


@rule("1.1")
@rule("8")
@pytest.mark.timeout(300 + RUNS)
def test_no_history_tells_the_default_store_from_its_specification() -> None:
    play(StoreMachine)


@rule("6.2")
@rule("6.7")
@pytest.mark.timeout(300 + RUNS)
def test_no_history_of_definitions_does_either() -> None:
    play(SchedulerMachine)


def play(machine: type[stateful.RuleBasedStateMachine]) -> None:
    """Play random histories to both stores."""
    print(f"seed {SEED}, {RUNS} histories of at most {STEPS} steps")
    settings = hypothesis.settings(
        max_examples=RUNS,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    stateful.run_state_machine_as_test(hypothesis.seed(SEED)(machine), settings=settings)
