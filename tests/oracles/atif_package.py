"""The `atif` package as another opinion on documents; laxer than Harbor (see `atif.md` 10)."""

import json

import atif
import pydantic


def validate(document: dict | bytes) -> list[str]:
    """Return what `atif` has against a document; empty: it is valid."""
    value = json.loads(document) if isinstance(document, bytes) else document
    try:
        atif.Trajectory.model_validate(value)
    except pydantic.ValidationError as error:
        return [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
    return []
