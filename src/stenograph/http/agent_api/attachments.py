"""The bytes of files that came with inputs."""

from urllib.parse import quote

from litestar import Response

from stenograph.conversations import access
from stenograph.conversations import attachment as attachments
from stenograph.conversations.attachment import Content
from stenograph.errors import NotFoundError
from stenograph.http.agent_api.common import C, Mask, mask
from stenograph.http.context import Ctx
from stenograph.http.route import Route, get
from stenograph.storage.database import Tx


@get(C + "/attachments/{attachment}", id="getAttachment", tag="Inputs", answer=bytes)
async def get_attachment(
    ctx: Ctx, workspace: str, conversation: str, attachment: str
) -> Response[bytes]:
    """Read a file that came with an input, waiting or in a turn.

    In a text, secret values are masked; a file of another kind that holds one is not served.
    """

    def look(tx: Tx) -> Response[bytes]:
        found = access.find(tx, ctx.caller, workspace, conversation)
        return _sent(attachments.read(tx, found, attachment), mask(ctx, tx, [found.id]))

    return await ctx.read(look)


def _sent(file: Content, cover: Mask) -> Response[bytes]:
    data = file.data
    if cover.redactor is not None and (text := file.text) is not None:
        data = cover.redactor.text(text).encode()
    elif cover.redactor is not None and not cover.redactor.clean(data):
        raise NotFoundError("Not found")
    # The bytes came from somebody: a browser must take them for nothing but what they say, and
    # show none of it as a page of this server.
    headers = {
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox",
        "Content-Disposition": f"attachment; filename*=UTF-8''{_named(file, cover)}",
    }
    return Response(data, media_type=file.content_type, headers=headers)


def _named(file: Content, cover: Mask) -> str:
    return quote(cover.text(file.filename) or "", safe="")


routes: list[Route] = [get_attachment]
