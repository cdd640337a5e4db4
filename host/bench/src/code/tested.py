from typing import List, Optional


def longest_run(numbers: List[int], limit: Optional[int] = None) -> List[int]:
    """Return the longest run of consecutive elements whose sum stays within limit.

    The earliest one wins where several are as long. Without a limit it is the
    whole list.

    >>> longest_run([1, 2, 3, 4, 5], 9)
    [1, 2, 3]
    >>> longest_run([], 3)
    []
    """
    if limit is None:
        return list(numbers)
    best: List[int] = []
    for start in range(len(numbers)):
        total = 0
        for end in range(start, len(numbers)):
            total += numbers[end]
            if total > limit:
                break
            if end + 1 - start > len(best):
                best = numbers[start:end + 1]
    return best


METADATA = {"author": "bench", "dataset": "test"}


def check(candidate):
    assert candidate([1, 2, 3, 4, 5], 9) == [1, 2, 3]
    assert candidate([], 3) == []
    assert candidate([5, 1, 1, 1, 7], 3) == [1, 1, 1]
    assert candidate([10, 20], 5) == []
    assert candidate([1, 1, 1, 1], 2) == [1, 1]
    assert candidate([3, 1, 2], None) == [3, 1, 2]
    assert candidate(list(range(20)), 25) == [0, 1, 2, 3, 4, 5, 6]


check(longest_run)
print("passed")
