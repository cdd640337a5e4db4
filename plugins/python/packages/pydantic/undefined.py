"""The absence of a value, where `None` is one."""


class PydanticUndefinedType:
    _only = None

    def __new__(cls):
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self):
        return "PydanticUndefined"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return "PydanticUndefined"


PydanticUndefined = PydanticUndefinedType()
