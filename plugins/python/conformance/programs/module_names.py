print(sorted(name for name in globals() if name != "__annotations__"), __cached__, __file__)
