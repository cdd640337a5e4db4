"""Builtins of our own.

A program may put other functions under the names of the builtins, by accident or to be judged otherwise. The modules of
this package begin with `from .sound import __builtins__`: a function looks its builtins up where its module's global of
that name says, so ours go on meaning what they mean.
"""

import builtins

__builtins__ = dict(vars(builtins))
