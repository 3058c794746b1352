"""What a model is told of a conversation, as the sealed request shows it."""

from typing import Any

from engine.driving import Driven
from engine.test_turns import candidates, conversation_of
from stenograph.conversations import fork, turn
from stenograph.conversations import workspace as workspaces
from stenograph.conversations.access import Conversation, find_workspace
from stenograph.engine import start
from stenograph.engine.start import Wish
from stenograph.engine.work import load
from stenograph.runs import request as requests
from stenograph.runs.request import Request
from stenograph.sessions import reason, sending
from stenograph.sessions.sending import NewMessage


def told(driven: Driven) -> list[tuple[str, str]]:
    """What the newest model call was told: role and text, or the result, of each message."""
    return [
        (entry["role"], "".join(it.get("text") or it.get("output") or "" for it in entry["parts"]))
        for entry in newest_request(driven).entries
    ]


def newest_request(driven: Driven) -> Request:
    [(newest,)] = driven.rows("SELECT max(invocation_id) FROM invocation_details")
    return driven.read(lambda tx: requests.read(tx, newest))


def talked(driven: Driven, *prompts: str) -> tuple[str, Conversation]:
    """A session in which these prompts were answered, one after the other."""
    session_id = driven.open(prompts[0], model="dev/small")
    driven.settle()
    for prompt in prompts[1:]:
        driven.say(session_id, prompt)
        driven.settle()
    return session_id, conversation_of(driven, candidates(driven)[0][1])


def view(driven: Driven, conversation: Conversation, number: int, **state: Any) -> None:
    turn_id = candidates(driven)[number][0]
    driven.write(lambda tx: turn.set_view_state(tx, conversation, turn_id, **state))


def ask(driven: Driven, session_id: str) -> list[tuple[str, str]]:
    driven.say(session_id, "now")
    driven.settle()
    return told(driven)


def test_turns_out_of_context_are_not_told(driven: Driven) -> None:
    session_id, conversation = talked(driven, "one", "two", "three", "four")
    view(driven, conversation, 0, visibility="excluded_from_context")
    view(driven, conversation, 1, visibility="hidden")
    view(driven, conversation, 2, concealed=True)
    assert ask(driven, session_id) == [
        ("user", "four"),
        ("assistant", "You said: four"),
        ("user", "now"),
    ]


def test_only_the_answer_that_is_shown_is_told(driven: Driven) -> None:
    session_id, conversation = talked(driven, "one")
    turn_id = candidates(driven)[0][0]
    wish = Wish(model="dev/thinker")
    driven.write(lambda tx: start.regenerate(tx, driven.owner, conversation, turn_id, wish))
    driven.settle()
    # Made anew, an answer does not know of the one it replaces.
    assert told(driven) == [("user", "one")]
    assert ask(driven, session_id) == [
        ("user", "one"),
        ("assistant", "They say: one I answer in one sentence.You said: one"),
        ("user", "now"),
    ]


def test_a_turn_that_failed_unheard_is_not_told_and_a_canceled_one_is(driven: Driven) -> None:
    session_id, _ = talked(driven, "[dev:refuse]")
    driven.say(session_id, "[dev:slow] x")
    driven.write(lambda tx: start.cancel_session(tx, driven.owner, session_id))
    assert ask(driven, session_id) == [
        ("user", "[dev:slow] x"),
        ("assistant", "(This turn ended without an answer: it was canceled.)"),
        ("user", "now"),
    ]


def test_results_are_told_also_of_calls_that_failed(driven: Driven) -> None:
    session_id, _ = talked(driven, "[dev:call broken] [dev:call glob]")
    said = ask(driven, session_id)
    assert said[2] == ("tool", "ValueError: it fell apartREADME.md")
    results = newest_request(driven).entries[2]["parts"]
    assert [it["is_error"] for it in results] == [True, False]


def test_the_instructions_of_a_reason_come_first(driven: Driven) -> None:
    profile = reason.Profile("helper", instructions="Be brief.", default_model="dev/small")
    made = driven.write(lambda tx: reason.create(tx, driven.owner, profile))
    driven.write(
        lambda tx: sending.to_reason(tx, driven.owner, made.public_id, NewMessage("hello"))
    )
    driven.settle()
    assert told(driven) == [("system", "Be brief."), ("user", "hello")]
    assert driven.rows("SELECT position, part, source, text FROM steps ORDER BY position") == [
        (0, "system", "system", "Be brief."),
        (1, "prompt", "user", None),
        (2, "agent", "agent", None),
    ]


def test_a_fork_knows_what_it_inherits(driven: Driven) -> None:
    def make(tx: Any) -> tuple[Any, Conversation]:
        from stenograph.conversations import conversation as conversations

        workspace = workspaces.create(tx, driven.owner, name="w", access_mode="account_wide")
        return workspace, conversations.create(tx, driven.owner, workspace, title=None)

    workspace, source = driven.write(make)
    for text in ("one", "[dev:call glob]", "three"):
        driven.ask(source, text, model="dev/small", tool_names=("glob",))
        driven.settle()
    point = candidates(driven)[1][0]

    def branch(tx: Any) -> Conversation:
        place = find_workspace(tx, driven.owner, workspace.public_id)
        found = load(tx, candidates_of(tx, source.id))
        return fork.create(tx, driven.owner, place, found.conversation, point)

    made = driven.write(branch)
    driven.ask(made, "now", model="dev/small", tool_names=("glob",))
    driven.settle()
    # The turn at the fork point is adopted with its prompt and its answer.
    assert told(driven) == [
        ("user", "one"),
        ("assistant", "You said: one"),
        ("user", "[dev:call glob]"),
        ("assistant", "It gave: README.md"),
        ("user", "now"),
    ]


def candidates_of(tx: Any, conversation_id: int) -> str:
    return str(
        tx.value(
            "SELECT v.public_id FROM variants v JOIN turns t ON t.id = v.turn_id"
            " WHERE t.conversation_id = :id LIMIT 1",
            id=conversation_id,
        )
    )
