"""Whether two states are the same."""


def same(one, other):
    """Equal as JSON: numbers by value, `true` no number, keys in any order."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return one == other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def difference(found, wanted, place=""):
    """The first difference of two states, in words; `None` where they are the same."""
    if same(found, wanted):
        return None
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in sorted(found.keys() | wanted.keys()):
            inner = f"{place}.{key}" if place else key
            if key not in found:
                return f"{inner} is missing"
            if key not in wanted:
                return f"{inner} should not be there"
            fault = difference(found[key], wanted[key], inner)
            if fault:
                return fault
    if isinstance(found, list) and isinstance(wanted, list):
        if len(found) != len(wanted):
            return f"{place} has {len(found)} items, not {len(wanted)}"
        for index, (one, other) in enumerate(zip(found, wanted)):
            fault = difference(one, other, f"{place}[{index}]")
            if fault:
                return fault
    return f"{place or 'the state'} differs"
