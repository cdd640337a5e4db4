"""What a pydantic, real or ours, shows of the models in `models.py`: as plain JSON, for comparing."""

import json
import re

import models
from pydantic import ValidationError


def attempt(function, *arguments, **keywords):
    """What a function returns, or which error it raises, as text."""
    try:
        return repr_of(function(*arguments, **keywords))
    except ValidationError as error:
        return f"ValidationError {error.error_count()}\n{error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def repr_of(value):
    return re.sub(r"0x[0-9a-f]{6,}", "0x..", repr(value))


def observed(model, data):
    """All that is seen of one model and one input."""
    found = {"validated": attempt(model.model_validate, data)}
    try:
        made = model.model_validate(data)
    except Exception:
        return found
    found["text"] = str(made)
    for name, options in (
        ("dump", {}), ("json", {"mode": "json"}), ("unset", {"exclude_unset": True}), ("none", {"exclude_none": True}),
        ("defaults", {"exclude_defaults": True}), ("alias", {"by_alias": True}), ("without", {"exclude": {"value"}}),
    ):  # fmt: skip
        found[name] = attempt(made.model_dump, **options)
    found["dump_json"] = attempt(made.model_dump_json)
    found["indented"] = attempt(made.model_dump_json, indent=2)
    found["copy"] = repr_of(made.model_copy(update={"value": 1}))
    found["equal"] = repr_of(made == model.model_validate(data))
    found["set"] = repr_of(sorted(made.model_fields_set))
    found["assigned"] = attempt(assigned, made, "value", "5")
    found["unknown"] = attempt(assigned, made, "nothing", 5)
    return found


def assigned(made, name, value):
    setattr(made, name, value)
    return made


def schemas():
    return {
        f"{model.__name__} {mode}": attempt(lambda: json.dumps(model.model_json_schema(mode=mode)))
        for model in models.MODELS
        for mode in ("validation", "serialization")
    }


def everything():
    """`[place, what was seen]`, in a fixed order; long parts by their text all the same."""
    seen = [[f"{model.__name__} {number}", observed(model, data)] for number, (model, data) in enumerate(models.inputs())]
    return {"schemas": schemas(), "inputs": seen}
