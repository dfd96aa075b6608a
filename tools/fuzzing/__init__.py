"""Fuzzers: what reads bytes that others may have written, tried with bytes that nobody wrote.

    targets     what is tried: its seeds, one execution, and how its checksums are repaired
    kernels     the same of native kernels, by hostile arguments that the bindings let through
    native/     drivers of the kernels for libFuzzer, with what must hold of an answer
    quick       mutations from a seed, without coverage: the form that `make test` runs
    guided      mutations guided by coverage, in a process of its own (atheris)
    compiled    the drivers, built with sanitizers and run (clang's libFuzzer)

An execution ends in an answer or in an error of `simindex.errors`. Anything else is a fault.
"""
