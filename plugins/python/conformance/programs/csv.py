import configparser
import csv
import io
import sys

rows = list(csv.DictReader(io.StringIO('name,value\na,"x,y"\nb,"say ""hi"""\n')))
print(rows)
writer = csv.writer(sys.stdout, lineterminator="\n")
writer.writerow([1, "a,b", None, 'q"q', "é"])
csv.DictWriter(sys.stdout, ["a", "b"], lineterminator="\n", extrasaction="ignore").writerows([{"a": 1, "b": 2, "c": 3}])
print(csv.Sniffer().sniff("a;b;c\n1;2;3").delimiter, list(csv.reader(["a\tb"], delimiter="\t")))
config = configparser.ConfigParser()
config.read_string("[one]\nkey = value\nnumber: 5\n")
print(config["one"]["key"], config.getint("one", "number"), config.sections())
