import argparse

parser = argparse.ArgumentParser(prog="tool", description="A tool.")
parser.add_argument("path")
parser.add_argument("-n", "--number", type=int, default=3, help="how many")
parser.add_argument("--flag", action="store_true")
print(parser.parse_args(["x", "-n", "5"]))
parser.print_help()
parser.parse_args(["x", "--number", "many"])
