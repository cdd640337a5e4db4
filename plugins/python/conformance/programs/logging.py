import logging
import sys

logging.warning("to stderr")
logger = logging.getLogger("mine")
handler = logging.StreamHandler(sys.stdout)
handler.setFormatter(logging.Formatter("%(levelname)s:%(name)s:%(lineno)d:%(funcName)s:%(message)s"))
logger.addHandler(handler)
logger.setLevel(logging.DEBUG)
logger.propagate = False
logger.debug("value %d", 5)
try:
    1 / 0
except ZeroDivisionError:
    logger.exception("failed")
