while True:
    try:
        while True:
            pass
    except BaseException:
        print("never")
