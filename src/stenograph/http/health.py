"""`GET /healthz`: whether this server answers and its database too. `GET /metrics`: its counts."""

import asyncio
from typing import Any

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

import stenograph
from stenograph.http.metrics import CONTENT_TYPE, Metrics
from stenograph.storage import migrate
from stenograph.storage.database import Database


def handlers(database: Database, metrics: Metrics) -> list[HTTPRouteHandler]:
    """Return the handlers over a database and the counters; neither asks for a key."""

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

    @get("/metrics", include_in_schema=False)
    async def prometheus() -> Response[bytes]:
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    return [healthz, prometheus]
