# Programs of make bench: bench_programs += bench/<name>, with
# bench_<name>_SOURCES and bench_<name>_LDADD = $(AK_BENCH_LIBS).
