"""Counts the words of a text."""

import rlf


@rlf.tool(pure=True)
def NAME(text: str, longest: int = 3) -> dict:
    """Counts the words of a text and returns the longest ones.

    Args:
        text: The text.
        longest: How many of the longest words to return, 1 to 10.
    """
    # The model reads the name, the docstring and a schema made from the annotations.
    if not 1 <= longest <= 10:
        # The model reads this, and can correct its call. Any other exception is a bug.
        raise rlf.Failure("longest is 1 to 10")
    words = text.split()
    by_length = sorted(set(words), key=lambda word: (-len(word), word))
    return {"words": len(words), "longest": by_length[:longest]}
