# Fuzz targets, for clang's libFuzzer: tests/fuzz/NAME.c with seeds in tests/fuzz/corpus/NAME.
# `make fuzz FUZZ=jinja FUZZ_SECONDS=300` runs one, `make fuzz` all, one after another.
EXTRA_DIST += tests/fuzz
FUZZ = jinja grammar schema calls tokenizer checkpoint speech audio containers http form server
FUZZ_SECONDS = 60
FUZZ_CC = clang

.PHONY: fuzz
fuzz:
	@for name in $(FUZZ); do \
	  FUZZ_CC='$(FUZZ_CC)' CPPFLAGS='$(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS)' LIBS='$(AK_LIBS) $(LIBS)' \
	  $(SHELL) $(srcdir)/tests/fuzz/run.sh '$(srcdir)' "$$name" '$(FUZZ_SECONDS)' || exit 1; \
	done
