import warnings

warnings.warn("careful")
warnings.warn("old", DeprecationWarning)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warnings.warn("kept", UserWarning)
print(len(caught), caught[0].message)


async def never():
    pass


never()
print("end")
