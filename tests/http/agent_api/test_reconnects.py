"""A follower that is cut off and comes back, again and again, misses nothing, sees none twice."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from feeds import new_session
from live import Server, Stream, conversation, listening, until
from serving import Api
from stenograph.events import catalogue
from stenograph.events.journal import Event
from stenograph.http.paging import event_cursor

WORDS = ("usage", "turn_status", "task_status", "attention_required")

steps = st.lists(
    st.one_of(
        st.tuples(st.just("happen"), st.lists(st.sampled_from(WORDS), min_size=1, max_size=130)),
        st.tuples(st.just("read"), st.integers(1, 150)),
        st.tuples(st.just("leave"), st.booleans()),
    ),
    max_size=12,
)


@pytest.fixture
def server(database, org, settings, sealer):
    api = Api(database, org, replace(settings, stream_seconds=3_600), sealer)
    with listening(api) as found:
        yield found
        until(found.is_idle)
    api.close()


class Follower:
    """Holds at most one stream; resumes by the header, or by the cursor in the query."""

    def __init__(self, server: Server, path: str) -> None:
        self.server, self.path = server, path
        self.got: list[tuple[int, str]] = []
        self.opened = None
        self.stream: Stream | None = None

    def read(self, count: int) -> None:
        if self.stream is None:
            self.come()
        assert self.stream is not None
        while count:
            told = next(self.stream)
            if told.type != "watermark":
                self.got.append((told.data["sequence"], told.type))
                count -= 1

    def come(self, by_query: bool = False) -> None:
        path, headers = self.path, {}
        if self.got and by_query:
            path += f"&after={event_cursor(self.got[-1][0])}"
        elif self.got:
            headers["Last-Event-ID"] = event_cursor(self.got[-1][0])
        self.opened = self.server.stream(path, **headers)
        self.stream = self.opened.__enter__()

    def leave(self) -> None:
        if self.opened is not None:
            self.opened.__exit__(None, None, None)
        self.opened = self.stream = None


@given(steps, st.sampled_from(["events", "lifecycle"]))
@settings(
    max_examples=15,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_nothing_is_missed_or_seen_twice(server, plan, items):
    api = server.api
    talk = conversation(api, new_session(api.database, api.org.owner))
    follower = Follower(server, f"{talk.path}/events/stream?items={items}")
    happened: list[tuple[int, str]] = []
    number = 0
    try:
        for step, how in [*plan, ("happen", ["turn_status"]), ("read", 10_000)]:
            match step:
                case "happen":
                    talk.append(*(Event(word) for word in how))
                    for word in how:
                        number += 1
                        if items == "events" or word in catalogue.LIFECYCLE:
                            happened.append((number, word))
                case "read":
                    follower.read(min(how, len(happened) - len(follower.got)))
                case "leave":
                    follower.leave()
                    follower.come(by_query=how)
            assert follower.got == happened[: len(follower.got)]
        assert follower.got == happened
    finally:
        follower.leave()
