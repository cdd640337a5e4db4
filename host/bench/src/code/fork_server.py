"""The fastest way to run Python without a sandbox: a process that has imported common modules and forks for each program.

Standard input: frames of four bytes of length and a program. Standard output: the same with the output of each.
"""
import ast, bisect, collections, contextlib, copy, dataclasses, datetime, decimal, fractions, functools  # noqa: E401,F401
import heapq, io, itertools, json, math, operator, os, random, re, statistics, string, sys, typing  # noqa: E401

source, sink = sys.stdin.buffer, sys.stdout.buffer
while head := source.read(4):
    program = source.read(int.from_bytes(head, "little"))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writer, 1)
        sys.stdout = open(1, "w")
        try:
            exec(compile(program, "main.py", "exec"), {"__name__": "__main__"})
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.close(writer)
    printed = b""
    while piece := os.read(reader, 65536):
        printed += piece
    os.close(reader)
    os.waitpid(child, 0)
    sink.write(len(printed).to_bytes(4, "little") + printed)
    sink.flush()
