"""Which model, with what effort: the words of a request, checked."""

import re
from typing import get_args

from stenograph.engine import choice
from stenograph.engine.models import catalog
from stenograph.errors import InvalidInputError
from stenograph.http.context import Ctx
from stenograph.http.v3.wire import Effort

_MODEL = re.compile(r"[^\s\x00-\x1f\x7f]{1,200}")


def model(name: str | None) -> str | None:
    """Return a model's name, `provider/model` for instance, if it may be one."""
    if name is not None and _MODEL.fullmatch(name) is None:
        raise InvalidInputError("Not the name of a model", code="invalid_model")
    return name


def known_model(ctx: Ctx, name: str | None) -> str | None:
    """As `model`, of a provider that this server knows or was told of (`STENO_ENDPOINTS`)."""
    if model(name) is not None and name is not None:
        catalog.parse(name, choice.endpoints_of(ctx.settings))
    return name


def effort(word: str | None) -> str | None:
    """Return how much to think, if it is one of the words for it."""
    words = get_args(Effort)
    if word is not None and word not in words:
        raise InvalidInputError(
            f"The effort is one of {', '.join(words)}", code="invalid_reasoning_effort"
        )
    return word
