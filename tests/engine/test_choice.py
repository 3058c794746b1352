"""What the settings say about models."""

import pytest

from stenograph.engine.choice import endpoints_of, rules
from stenograph.errors import InvalidInputError
from stenograph.settings import Settings


def test_the_settings_say_nothing_and_a_dev_model_answers(tmp_path):
    found = rules(Settings(data=tmp_path))
    assert (found.model, found.fallbacks, found.endpoints) == ("dev/thinker", {}, ())


def test_models_are_named_in_every_way_and_kept_in_one(tmp_path):
    settings = Settings(
        data=tmp_path,
        endpoints="shed=http://shed.example/v1 attic=https://attic.example",
        model="shed:big:7b",
        fallbacks=" shed/big:7b = openai:gpt-5, attic/small ;; openai/gpt-5=dev/small",
    )
    found = rules(settings)
    assert found.model == "shed/big:7b"
    assert found.fallbacks == {
        "shed/big:7b": ("openai/gpt-5", "attic/small"),
        "openai/gpt-5": ("dev/small",),
    }
    assert endpoints_of(settings) == {
        "shed": "http://shed.example/v1",
        "attic": "https://attic.example",
    }
    assert set(found.endpoints) == {"shed", "attic"}


@pytest.mark.parametrize(
    ("variable", "setting"),
    [
        ("STENO_MODEL", {"model": "thinker"}),
        ("STENO_MODEL", {"model": "shed/big"}),
        ("STENO_MODEL", {"model": "byok:openai:gpt-5"}),
        ("STENO_FALLBACKS", {"fallbacks": "openai/gpt-5"}),
        ("STENO_FALLBACKS", {"fallbacks": "openai/gpt-5="}),
        ("STENO_FALLBACKS", {"fallbacks": "openai/gpt-5=dev/small,"}),
        ("STENO_FALLBACKS", {"fallbacks": "openai/gpt-5=byok:dev:small"}),
        ("STENO_ENDPOINTS", {"endpoints": "shed=shed.example"}),
    ],
)
def test_what_cannot_be_meant_is_named_by_its_variable(tmp_path, variable, setting):
    with pytest.raises(InvalidInputError, match=variable) as refused:
        rules(Settings(data=tmp_path, **setting))
    assert refused.value.code == "invalid_setting"
