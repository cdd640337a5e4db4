from typing import List


def longest_rise(heights: List[int]) -> List[int]:
    """ The longest run of neighbours in which each is higher than the one before; the first of several.
    >>> longest_rise([3, 1, 2, 5, 4])
    [1, 2, 5]
    >>> longest_rise([])
    []
    """
    best: List[int] = []
    current: List[int] = []
    for height in heights:
        if current and height <= current[-1]:
            current = []
        current = current + [height]
        if len(current) > len(best):
            best = current
    return best


def check(candidate):
    assert candidate([3, 1, 2, 5, 4]) == [1, 2, 5]
    assert candidate([]) == []
    assert candidate([7]) == [7]
    assert candidate([5, 4, 3]) == [5]
    assert candidate([1, 2, 1, 2, 3, 0, 9]) == [1, 2, 3], "the longer one"
    assert candidate([2, 2, 2]) == [2, 2], "this one fails"


check(longest_rise)
