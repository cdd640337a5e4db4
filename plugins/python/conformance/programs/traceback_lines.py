text = """a form feed: 
is no new line to the compiler"""
print(len(text))
result = (1 +
          undefined_name +
          3)
