"""Which model answers, how it is set, and which one when it fails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from stenograph.conversations.variant import Model
from stenograph.engine.models import catalog
from stenograph.engine.models.catalog import ModelId
from stenograph.engine.models.failures import ModelFailedError, Patience, wait_before_retry
from stenograph.engine.work import Work
from stenograph.errors import InvalidInputError
from stenograph.settings import Settings
from stenograph.storage.database import Row


@dataclass(frozen=True, slots=True)
class Rules:
    """What the server was told about models; the names are those of `models.catalog.parse`.

    `fallbacks`: by a model's name (`provider/model`), who is asked when it has failed for good.
    """

    model: str = "dev/thinker"
    fallbacks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    endpoints: Sequence[str] = ()
    patience: Patience = field(default_factory=Patience)


def rules(settings: Settings) -> Rules:
    """Return what the settings say about models.

    Raises `InvalidInputError` `invalid_setting`, naming the variable.
    """
    endpoints = tuple(endpoints_of(settings))

    def named(text: str, variable: str) -> str:
        try:
            found = catalog.parse(text.strip(), endpoints)
        except InvalidInputError as error:
            raise _unusable(variable, error.message) from None
        if found.byok:
            raise _unusable(variable, "byok: is for those who ask, the server's own are set here")
        return str(found)

    fallbacks: dict[str, tuple[str, ...]] = {}
    for rule in filter(None, map(str.strip, settings.fallbacks.split(";"))):
        failing, equals, others = rule.partition("=")
        if not equals:
            raise _unusable("STENO_FALLBACKS", f"A rule is written a/b=c/d,e/f, not {rule!r}")
        asked = [named(other, "STENO_FALLBACKS") for other in others.split(",")]
        fallbacks[named(failing, "STENO_FALLBACKS")] = tuple(dict.fromkeys(asked))
    return Rules(named(settings.model, "STENO_MODEL"), fallbacks, endpoints)


def endpoints_of(settings: Settings) -> dict[str, str]:
    """Return the base URLs of the settings' own OpenAI-compatible servers, by name; raises as
    `rules` does."""
    try:
        return catalog.parse_endpoints(settings.endpoints)
    except InvalidInputError as error:
        raise _unusable("STENO_ENDPOINTS", error.message) from None


def _unusable(variable: str, why: str) -> InvalidInputError:
    return InvalidInputError(f"{variable}: {why}", code="invalid_setting")


@dataclass(frozen=True, slots=True)
class Choice:
    """Whom to ask next. `attempt` counts this model's, from 1."""

    id: ModelId
    model: Model
    attempt: int


class Failure(msgspec.Struct, frozen=True):
    """How a model call failed, as it is kept beside the call."""

    kind: str
    message: str
    retry_after: float | None = None


class InvocationRest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What of a model call has no column; `extra` and `metrics` are also an export's."""

    failure: Failure | None = None
    extra: dict[str, dict[str, int | str]] | msgspec.UnsetType = msgspec.UNSET
    metrics: dict[str, dict[str, int]] | None = None


def candidates(work: Work, rules: Rules) -> list[tuple[ModelId, Model]]:
    """Return who may be asked, the wanted model first, each with its effective settings.

    Raises `InvalidInputError` `invalid_model` or `RefusedError` `unsupported_reasoning_effort`.
    """
    asked = work.variant.model
    if asked.provider_id is not None and asked.model_ref is not None:
        wanted = ModelId(asked.provider_id, asked.model_ref, asked.byok)
    else:
        wanted = catalog.parse(asked.model_ref or work.model or rules.model, rules.endpoints)
    # The session's effort is meant for the session's model.
    effort = asked.reasoning_effort
    if effort is None and asked.model_ref in (None, work.model):
        effort = work.effort
    found = [(wanted, settings_of(wanted, asked.reasoning_enabled, effort))]
    for name in rules.fallbacks.get(str(wanted), ()):
        # Another model starts from its own defaults (agent-api.md 4.2).
        other = replace(catalog.parse(name, rules.endpoints), byok=wanted.byok)
        found.append((other, settings_of(other, None, None)))
    return found


def asks_own_key(work: Work) -> bool:
    """Tell whether only the organization's own key may be used (`byok:provider:model`)."""
    asked = work.variant.model
    if asked.provider_id is not None:
        return asked.byok
    return (asked.model_ref or work.model or "").startswith("byok:")


def settings_of(wanted: ModelId, enabled: bool | None, effort: str | None) -> Model:
    """Return a model with what of the wanted settings it will do.

    Raises `RefusedError` `unsupported_reasoning_effort`.
    """
    can = catalog.effective(wanted, enabled, effort)
    return Model(
        wanted.provider_id,
        wanted.model_ref,
        can.reasoning_enabled,
        can.reasoning_effort,
        wanted.byok,
    )


def next_choice(
    tried: Sequence[Row], candidates: Sequence[tuple[ModelId, Model]], rules: Rules
) -> tuple[Choice, float] | Failure:
    """Return whom to ask after what was tried (rows of `store.attempts`), and how many seconds to
    wait before; or the last failure, when nobody is left."""
    last: Failure | None = None
    for wanted, model in candidates:
        failures = [
            failure
            for _, status, provider, ref, *_, rest in tried
            if status == "failed" and (provider, ref) == (wanted.provider_id, wanted.model_ref)
            if (failure := _read(rest)) is not None
        ]
        if not failures:
            return Choice(wanted, model, 1), 0.0
        last = failures[-1]
        wait = wait_before_retry(
            ModelFailedError(last.kind, last.message, retry_after=last.retry_after),  # type: ignore[arg-type]
            len(failures),
            rules.patience,
        )
        if wait is not None:
            return Choice(wanted, model, len(failures) + 1), wait
    assert last is not None
    return last


def failure_of(row: Row) -> Failure | None:
    """Return how an attempt (a row of `store.attempts`) failed; None: it did not."""
    return _read(row[-1]) if row[1] == "failed" else None


def _read(rest: str | None) -> Failure | None:
    return None if rest is None else msgspec.json.decode(rest, type=InvocationRest).failure
