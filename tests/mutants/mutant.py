"""Switches the mutants of Python at run time, as mutant.h those of C; run.sh puts it beside the package."""
import os

chosen = int(os.environ.get("AK_MUTANT", "0"))


def AK_MUTANT(n):
    return n == chosen
