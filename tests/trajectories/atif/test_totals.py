"""What steps add up to (atif.md section 6; known faults 11, 22, 41, 43, 51)."""

import msgspec
from hypothesis import given, settings

from stenograph.trajectories.atif.format import FinalMetrics, Trajectory
from stenograph.trajectories.atif.totals import own, run
from strategies.atif import trajectories
from trajectories.atif.documents import agent, document, user


def trajectory(*steps, **root) -> Trajectory:
    return msgspec.convert(document(*steps, **root), Trajectory)


def used(prompt=None, **metrics) -> dict:
    known = {} if prompt is None else {"prompt_tokens": prompt}
    return agent(metrics=known | metrics)


def test_copied_context_is_counted_where_it_came_from():
    """Fault 11: 50 for the second file, 150 for the run of both."""
    first = trajectory(used(100))
    copies = [{**used(100), "is_copied_context": True}] * 2
    second = trajectory(*copies, used(50))
    assert own(second).total_prompt_tokens == 50
    assert own(first).total_prompt_tokens + own(second).total_prompt_tokens == 150


def test_a_runs_total_comes_from_the_steps_whatever_was_claimed():
    """Fault 41."""
    child = document(used(40), trajectory_id="k")
    for claim in (100, 140):
        parent = trajectory(
            used(100), subagent_trajectories=[child], final_metrics={"total_prompt_tokens": claim}
        )
        assert own(parent).total_prompt_tokens == 100
        assert run(parent).total_prompt_tokens == 140


def test_unknown_is_absent_and_zero_is_zero():
    """Faults 22, 43, 51."""
    assert own(trajectory(user(), agent())) == FinalMetrics(total_steps=2)
    free = own(trajectory(used(10, cached_tokens=0, cost_usd=0.0)))
    assert (free.total_cached_tokens, free.total_cost_usd) == (0, 0.0)


def test_a_partial_cost_is_no_cost():
    assert own(trajectory(used(1, cost_usd=0.5), used(1))).total_cost_usd is None
    dispatched = agent(llm_call_count=0)
    assert own(trajectory(used(1, cost_usd=0.5), dispatched)).total_cost_usd == 0.5


def test_costs_add_up_exactly():
    assert own(trajectory(*[used(1, cost_usd=0.1)] * 10)).total_cost_usd == 1.0


@settings(max_examples=50, deadline=None)
@given(trajectories())
def test_a_run_is_at_least_its_root(made):
    for name in ("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens"):
        mine, ours = getattr(own(made), name), getattr(run(made), name)
        assert mine is None or ours >= mine
