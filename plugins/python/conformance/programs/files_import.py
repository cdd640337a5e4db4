import helper
from package import inner
from package.inner import value

print(helper.double(21), helper.__name__, value, inner.__name__)
try:
    import missing_module
except ModuleNotFoundError as error:
    print(error, error.name)
