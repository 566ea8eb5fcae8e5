"""Batches come to take as long as the target says, soon, and without swinging."""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.enumerator.coordinator.batch_sizing import BatchDuration

TARGET = 60.0
READERS = 2
GUESS = BatchDuration.guess(TARGET, READERS).rate


class Trigger:
    """A query whose true costs are known; each batch is cut while the one before it runs."""

    def __init__(self, fixed=0.0, rate=GUESS, noise=0.0, seed=0):
        self.fixed, self.rate, self.noise = fixed, rate, noise
        self.random = random.Random(seed)
        self.estimate = BatchDuration.guess(TARGET, READERS)
        self.sizes = [self.estimate.work]
        self.seconds: list[float] = []

    def run(self, batches):
        """Run batches; what they take, without the noise."""
        for _ in range(batches):
            size = self.sizes[-1]
            true = self.fixed + self.rate * size
            factor = math.exp(self.random.gauss(0.0, self.noise))
            self.seconds.append(true)
            if self.estimate.batches == 0:
                # The second batch waits for the first one.
                self.estimate = self.estimate.observed(size, true * factor)
                self.sizes.append(self.estimate.work)
            else:
                ahead = self.estimate.work
                self.estimate = self.estimate.observed(size, true * factor)
                self.sizes.append(ahead)
        return self.seconds[-batches:]


TENFOLD = st.floats(-1.0, 1.0).map(lambda power: 10.0**power)


def within_a_quarter(seconds):
    return all(0.75 * TARGET <= each <= 1.25 * TARGET for each in seconds)


@given(
    factor=TENFOLD,
    fixed=st.floats(0.0, TARGET / 5),
)
def test_a_guess_ten_times_wrong_is_right_after_three_batches(factor, fixed):
    trigger = Trigger(fixed, factor * GUESS)
    trigger.run(3)
    assert within_a_quarter(trigger.run(20))


@given(factor=TENFOLD, fixed=st.floats(0.0, TARGET / 60), learned=st.integers(5, 30))
def test_what_was_learned_and_is_ten_times_wrong_is_right_after_three_batches(
    factor, fixed, learned
):
    trigger = Trigger(fixed)
    trigger.run(learned)
    trigger.rate *= factor
    trigger.run(3)
    assert within_a_quarter(trigger.run(20))


@given(factor=TENFOLD, fixed=st.floats(0.0, TARGET / 5), learned=st.integers(5, 30))
def test_a_long_fixed_time_delays_that_by_one_batch(factor, fixed, learned):
    trigger = Trigger(fixed)
    trigger.run(learned)
    trigger.rate *= factor
    trigger.run(2)
    # None of them is much too long: a small batch says little about how long a large one takes.
    assert max(trigger.run(2)) <= 2.0 * TARGET
    assert within_a_quarter(trigger.run(20))


@pytest.mark.parametrize("factor", [0.5, 2.0])
@given(fixed=st.floats(0.0, TARGET / 5))
def test_three_batches_after_the_cluster_changes_they_are_as_long_again(factor, fixed):
    trigger = Trigger(fixed)
    trigger.run(20)
    trigger.rate *= factor
    trigger.run(3)
    assert within_a_quarter(trigger.run(20))


@given(seed=st.integers(0, 10_000), fixed=st.floats(0.0, TARGET / 5))
def test_noise_does_not_make_the_size_swing(seed, fixed):
    trigger = Trigger(fixed, noise=0.2, seed=seed)
    trigger.run(100)
    sizes = [math.log(size) for size in trigger.sizes[10:]]
    assert statistics.pstdev(sizes) < 0.2, "less than the noise itself"
    # A size that swings is on the other side of the mean each time.
    mean = statistics.mean(sizes)
    pairs = itertools.pairwise(sizes)
    assert sum((one - mean) * (other - mean) for one, other in pairs) > 0


def test_a_single_slow_batch_does_not_make_the_next_ones_tiny():
    trigger = Trigger()
    trigger.run(20)
    before = trigger.sizes[-1]
    trigger.rate *= 5
    trigger.run(1)
    trigger.rate /= 5
    trigger.run(2)
    assert trigger.sizes[-1] > before / 3.5
    trigger.run(3)
    assert within_a_quarter(trigger.run(10))


def test_a_fixed_time_beyond_the_target_does_not_make_batches_vanish():
    trigger = Trigger(fixed=2 * TARGET)
    trigger.run(50)
    assert trigger.sizes[-1] * trigger.rate > TARGET / 20


@given(
    observations=st.lists(
        st.tuples(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6)), min_size=1, max_size=30
    )
)
def test_after_any_observation_the_next_size_is_a_positive_number(observations):
    estimate = BatchDuration.guess(TARGET, READERS)
    for work, seconds in observations:
        estimate = estimate.observed(work, seconds)
        assert 0.0 < estimate.work < math.inf
        assert 0.0 <= estimate.fixed < math.inf


def test_what_was_learned_survives_as_json_and_serves_another_target():
    trigger = Trigger(fixed=3.0)
    trigger.run(10)
    text = json.dumps(trigger.estimate.to_json())
    assert BatchDuration.from_json(TARGET, json.loads(text)) == trigger.estimate
    other = BatchDuration.from_json(2 * TARGET, json.loads(text))
    assert other.expected(other.work) == pytest.approx(2 * TARGET)
