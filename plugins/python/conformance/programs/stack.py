import inspect
import logging
import traceback


def depth(n):
    if n:
        return depth(n - 1)
    traceback.print_stack()
    return [record.function for record in inspect.stack()], [entry.name for entry in traceback.extract_stack()]


print(depth(2))
print(len(list(traceback.walk_stack(inspect.currentframe()))), len(inspect.getouterframes(inspect.currentframe())))
logging.warning("here", stack_info=True)
