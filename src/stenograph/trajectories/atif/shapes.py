"""Every way in which a JSON value departs from the ATIF structs, with JSON pointers.

msgspec stops at the first departure; this walks the same types and goes on. It is only run when
msgspec has refused, so it may be slow, and what it accepts is what msgspec accepts.
"""

from collections.abc import Iterator

from msgspec import inspect

from stenograph.trajectories.atif.findings import Problem
from stenograph.trajectories.atif.format import Json, Trajectory
from stenograph.trajectories.atif.versions import is_newer

TRAJECTORY = inspect.type_info(Trajectory)


def child(pointer: str, key: str | int) -> str:
    """Return the pointer of a member or item of the value at `pointer`."""
    return f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"


def misfits(value: Json, kind: inspect.Type = TRAJECTORY, at: str = "") -> Iterator[Problem]:
    """Return what in `value` is not of the type `kind`, in the order of the schema."""
    if isinstance(kind, inspect.UnionType):
        options = [option for option in kind.types if _could_be(value, option)]
        if options:
            yield from misfits(value, options[0], at)
        else:
            expected = " or ".join(_name(t) for t in kind.types if not _is_null(t))
            yield Problem(at, f"expected {expected}, got {_name_of(value)}")
    elif not _could_be(value, kind):
        yield Problem(at, f"expected {_name(kind)}, got {_name_of(value)}")
    elif isinstance(kind, inspect.StructType):
        yield from _members(value, kind, at)
    elif isinstance(kind, inspect.ListType):
        for index, item in enumerate(value):
            yield from misfits(item, kind.item_type, child(at, index))
    elif isinstance(kind, inspect.DictType):
        if not all(isinstance(key, str) for key in value):
            yield Problem(at, "expected keys that are strings")
    elif isinstance(kind, inspect.LiteralType) and value not in kind.values:
        allowed = ", ".join(f'"{option}"' for option in sorted(map(str, kind.values)))
        yield Problem(at, f"expected one of {allowed}")
    elif isinstance(kind, inspect.FloatType) and not _fits_float(value):
        yield Problem(at, "this number is out of range")


def _members(value: dict[str, Json], kind: inspect.StructType, at: str) -> Iterator[Problem]:
    for field in kind.fields:
        if field.encode_name in value:
            yield from misfits(value[field.encode_name], field.type, child(at, field.encode_name))
        elif field.required:
            yield Problem(child(at, field.encode_name), "this field is required")
    known = {field.encode_name for field in kind.fields}
    for key in value:
        if key not in known:
            yield Problem(child(at, key), "ATIF has no such field here; free data goes in `extra`")


def set_aside(
    value: Json,
    unknown: dict[str, Json],
    kind: inspect.Type = TRAJECTORY,
    at: str = "",
    newer: bool = False,
) -> Json:
    """Return a document without the fields that ATIF to 1.8 does not know.

    Only of documents labelled with a later 1.x (`newer`); the fields go to `unknown`, by pointer.
    A document of a known version keeps its own, to be refused.
    """
    if isinstance(kind, inspect.UnionType):
        options = [option for option in kind.types if _could_be(value, option)]
        return set_aside(value, unknown, options[0], at, newer) if options else value
    if isinstance(kind, inspect.ListType) and isinstance(value, list):
        return [
            set_aside(item, unknown, kind.item_type, child(at, index), newer)
            for index, item in enumerate(value)
        ]
    if not (isinstance(kind, inspect.StructType) and isinstance(value, dict)):
        return value
    if kind.cls is Trajectory:
        newer = is_newer(value.get("schema_version"))
    types = {field.encode_name: field.type for field in kind.fields}
    kept = {}
    for key, member in value.items():
        if key in types:
            kept[key] = set_aside(member, unknown, types[key], child(at, key), newer)
        elif newer:
            unknown[child(at, key)] = member
        else:
            kept[key] = member
    return kept


def _is_null(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.NoneType)


def _could_be(value: Json, kind: inspect.Type) -> bool:
    """Whether the JSON kind of the value fits. Strict: `"2"`, `2.0` and `true` are no integers."""
    if isinstance(kind, inspect.AnyType):
        return True
    if isinstance(kind, inspect.UnionType):
        return any(_could_be(value, option) for option in kind.types)
    return type(value) in _PYTHON[type(kind)]


_PYTHON: dict[type[inspect.Type], tuple[type, ...]] = {
    inspect.StructType: (dict,),
    inspect.DictType: (dict,),
    inspect.ListType: (list,),
    inspect.StrType: (str,),
    inspect.LiteralType: (str,),
    inspect.IntType: (int,),
    inspect.FloatType: (float, int),
    inspect.BoolType: (bool,),
    inspect.NoneType: (type(None),),
}
_NAMES: dict[type[inspect.Type], str] = {
    inspect.StructType: "an object",
    inspect.DictType: "an object",
    inspect.ListType: "an array",
    inspect.StrType: "a string",
    inspect.LiteralType: "a string",
    inspect.IntType: "an integer",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
}


def _name(kind: inspect.Type) -> str:
    return _NAMES[type(kind)]


def _name_of(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    names = {dict: "an object", list: "an array", str: "a string", int: "an integer"}
    return names.get(type(value), "a number")


def _fits_float(value: float) -> bool:
    try:
        float(value)
    except OverflowError:
        return False
    return True
