def parse(text):
    try:
        return int(text)
    except ValueError as error:
        raise RuntimeError(f"cannot parse {text!r}") from error


def cleanup():
    try:
        parse("x1")
    finally:
        {}["missing"]


try:
    cleanup()
except KeyError as error:
    error.add_note("a note\nof two lines")
    raise
