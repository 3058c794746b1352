"""Ask a model and hear its answer as it comes."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from stenograph.engine.models.answer import Delta, Response, ToolCallStarted
from stenograph.engine.models.catalog import ModelId
from stenograph.engine.models.credentials import Credentials, suffice
from stenograph.engine.models.failures import ModelFailedError
from stenograph.engine.models.request import ModelRequest

if TYPE_CHECKING:
    from pydantic_ai.models import StreamedResponse

#: Characters of an answer, all its texts together, and its calls: some models go in circles and
#: never end.
LONGEST = 20_000_000
MOST_CALLS = 1_000


async def stream(
    request: ModelRequest, credentials: Credentials
) -> AsyncGenerator[Delta | Response, None]:
    """Make one call: yields deltas, and at the end exactly one `Response`.

    Raises `ModelFailedError`, after none, some or all of the deltas; what was heard before it is no
    answer. Close the generator (`contextlib.aclosing`) to hang up early.
    """
    if request.model.provider.protocol == "scripted":
        from stenograph.engine.models.scripted import play

        heard = play(request, credentials.script)
    elif suffice(request.model.provider, credentials):
        # The SDKs take a second to import and would hold up every other run of this loop.
        await asyncio.to_thread(_load, request.model)
        heard = _ask(request, credentials)
    else:
        raise ModelFailedError("unauthorized", f"No key is set up for {request.model}")
    length = calls = 0
    try:
        async for event in heard:
            if isinstance(event, ToolCallStarted):
                calls += 1
            elif not isinstance(event, Response):
                length += len(event.text)
            if length > LONGEST or calls > MOST_CALLS:
                limits = f"{LONGEST} characters or {MOST_CALLS} calls"
                raise ModelFailedError("interrupted", f"The answer has more than {limits}")
            yield event
    finally:
        await heard.aclose()


def _load(model: ModelId) -> None:
    from stenograph.engine.models import heard, wires  # noqa: F401

    wires.load(model)


async def _ask(
    request: ModelRequest, credentials: Credentials
) -> AsyncGenerator[Delta | Response, None]:
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.models import ModelRequestParameters

    from stenograph.engine.models import heard, native, wires

    model, sent = request.model, wires.Sent()
    parameters = ModelRequestParameters(function_tools=native.tool_definitions(request.tools))
    answer: StreamedResponse | None = None
    try:
        async with wires.opened(model, credentials, sent) as asked:
            history = asked.prepare_messages(native.to_native(request.messages, model), parameters)
            async with model_request_stream(
                asked,
                history,
                model_settings=wires.native_settings(model, request.settings),
                model_request_parameters=parameters,
                instrument=False,
            ) as answer:
                async for delta in heard.deltas(answer):
                    yield delta
    except Exception as problem:
        meaning = heard.failure(problem, model, sent, answer)
        if meaning is None:
            raise
        # A provider that turns a key down may repeat it, and failures are recorded.
        raise meaning.without(credentials.secrets) from None
    yield heard.response(answer.get(), model, sent)
