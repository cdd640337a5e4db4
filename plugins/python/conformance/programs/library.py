import importlib

NAMES = """
abc argparse array ast asyncio base64 binascii bisect bdb calendar cmath cmd code codecs collections colorsys compileall
concurrent.futures configparser contextlib contextvars copy copyreg csv dataclasses datetime decimal difflib dis doctest
email email.mime.text enum errno filecmp fileinput fnmatch fractions ftplib functools gc getopt getpass gettext glob
graphlib gzip hashlib heapq hmac html html.parser http http.client http.cookies imaplib importlib.metadata
importlib.resources inspect io ipaddress itertools json json.tool keyword linecache locale logging logging.config
logging.handlers mailbox marshal math mimetypes modulefinder numbers opcode operator optparse os pathlib pickle
pickletools pkgutil platform plistlib poplib pprint profile cProfile pstats pyclbr pydoc queue quopri random re reprlib
runpy sched secrets select selectors shelve shlex shutil signal site smtplib socket socketserver stat statistics string
stringprep struct subprocess symtable sys sysconfig tabnanny tarfile tempfile textwrap this threading time timeit token
tokenize tomllib trace traceback tracemalloc types typing unicodedata unittest unittest.mock urllib.error urllib.parse
urllib.request urllib.robotparser uuid warnings wave weakref webbrowser wsgiref.simple_server xml.dom.minidom
xml.etree.ElementTree xml.sax xmlrpc.client zipapp zipfile zipimport zlib zoneinfo
""".split()
missing = []
import contextlib, io

with contextlib.redirect_stdout(io.StringIO()):
    for name in NAMES:
        try:
            importlib.import_module(name)
        except ImportError as error:
            missing.append((name, str(error)))
print(len(NAMES), missing)
