"""Monty, an interpreter of a part of Python: a process that runs each program in a new session of one worker.

Standard input: frames of four bytes of length and a program. Standard output: the same with the output of each.
"""
import sys

import pydantic_monty

source, sink = sys.stdin.buffer, sys.stdout.buffer
with pydantic_monty.Monty() as pool:
    while head := source.read(4):
        program = source.read(int.from_bytes(head, "little")).decode()
        printed = pydantic_monty.CollectString()
        try:
            with pool.checkout() as session:
                session.feed_run(program, print_callback=printed)
            output = printed.output.encode()
        except pydantic_monty.MontyError as error:
            output = f"{type(error).__name__}: {error}".encode()
        sink.write(len(output).to_bytes(4, "little") + output)
        sink.flush()
