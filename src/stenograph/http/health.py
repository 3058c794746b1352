"""`GET /healthz`: whether this server answers and its database too."""

import asyncio
from typing import Any

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

import stenograph
from stenograph.storage import migrate
from stenograph.storage.database import Database


def handlers(database: Database) -> list[HTTPRouteHandler]:
    """Return the handler over a database."""

    @get("/healthz", include_in_schema=False)
    async def healthz() -> Response[Any]:
        schema = await asyncio.to_thread(migrate.current, database)
        return Response(
            {
                "status": "ok",
                "version": stenograph.__version__,
                "database": database.dialect,
                "schema": schema,
            }
        )

    return [healthz]
