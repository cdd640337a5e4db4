import tests
from lib.deep import answer

print(tests.check(4), tests.__name__, answer)
tests.fail()
