"""The conversations of a workspace."""

from collections.abc import Mapping
from typing import Any

from stenograph.client.calls import Call, given, new_key, one, page, path
from stenograph.client.conversation import ConversationResource, receipt
from stenograph.client.records import (
    Conversation,
    ConversationLine,
    ConversationReceipt,
    Match,
    Page,
)
from stenograph.client.steps import Script, pages
from stenograph.client.surface import Resource, Via, iteration, operation


class ConversationCollection(Resource[Via]):
    """`workspace.conversations`.

    `order` is `asc` or `desc`, `order_by` `public_id` (creation) or `last_activity_at`.
    """

    def conversation(self, conversation_id: str) -> ConversationResource[Via]:
        """Return one, which is not asked for until something of it is."""
        return ConversationResource(self._via, *self._at, conversation_id)

    @operation
    def list(
        self,
        *,
        after: str | None = None,
        limit: int | None = None,
        order: str | None = None,
        order_by: str | None = None,
        side: bool | None = None,
    ) -> Call[Page[ConversationLine]]:
        """Read those at the top that are not archived; with `side`, only side conversations."""
        return Call(
            "GET",
            self._path(),
            page("conversations", ConversationLine),
            query={
                "after": after, "limit": limit, "order": order, "order_by": order_by, "side": side,
            },
        )  # fmt: skip

    @iteration
    def each(
        self,
        *,
        order: str | None = None,
        order_by: str | None = None,
        side: bool | None = None,
    ) -> Script[ConversationLine]:
        """Give all that `list` has."""
        return pages(
            lambda after: ConversationCollection.list.call(
                self, after=after, limit=100, order=order, order_by=order_by, side=side
            )
        )

    @operation
    def archived(
        self,
        *,
        after: str | None = None,
        limit: int | None = None,
        order: str | None = None,
        order_by: str | None = None,
    ) -> Call[Page[ConversationLine]]:
        """Read those that are archived."""
        return Call(
            "GET",
            self._path("archived"),
            page("conversations", ConversationLine),
            query={"after": after, "limit": limit, "order": order, "order_by": order_by},
        )

    @iteration
    def iter_archived(
        self, *, order: str | None = None, order_by: str | None = None
    ) -> Script[ConversationLine]:
        """Give all that are archived."""
        return pages(
            lambda after: ConversationCollection.archived.call(
                self, after=after, limit=100, order=order, order_by=order_by
            )
        )

    @operation
    def search(
        self,
        query: str,
        *,
        archived: str | None = None,
        include_auxiliary: bool | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> Call[Page[Match]]:
        """Find turns by keywords in their prompt, answer or steers, and conversations by title.

        `archived`: `exclude`, `include` or `only`. `include_auxiliary`: sides and subagents too.
        """
        return Call(
            "GET",
            path(*self._at[:-1], "conversation_search"),
            page("matches", Match),
            query={
                "query": query, "archived": archived, "include_auxiliary": include_auxiliary,
                "after": after, "limit": limit,
            },
        )  # fmt: skip

    @iteration
    def iter_search(
        self, query: str, *, archived: str | None = None, include_auxiliary: bool | None = None
    ) -> Script[Match]:
        """Give all that is found."""
        return pages(
            lambda after: ConversationCollection.search.call(
                self, query, archived=archived, include_auxiliary=include_auxiliary, after=after,
                limit=50,
            )
        )  # fmt: skip

    @operation
    def create(
        self,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        billing_subject: str | None = None,
        default_runner: str | None = None,
        answerer: str | None = None,
        access: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[ConversationReceipt]:
        """Make a conversation. `answerer` and `default_runner` are ids; `access` as in
        `set_access`."""
        key = new_key(idempotency_key)
        new = given(
            title=title,
            metadata=metadata,
            billing_subject=billing_subject,
            default_runner_executor_public_id=default_runner,
            answering_user_public_id=answerer,
            access=access,
        )
        return Call(
            "POST",
            self._path(),
            receipt(key),
            status=201,
            body={"conversation": new},
            idempotency_key=key,
        )

    @operation
    def fetch(self, conversation_id: str) -> Call[Conversation]:
        """Read one."""
        return Call("GET", self._path(conversation_id), one("conversation", Conversation))
