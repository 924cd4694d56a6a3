EXTRA_DIST += bench/exchange.c bench/hostile.sh bench/kv_cache.py bench/needle.py bench/page.sh bench/prompts.txt \
	bench/scale.py \
	bench/speculation.sh

# A program: bench_programs += bench/<name>, with
# bench_<name>_SOURCES and bench_<name>_LDADD = $(AK_BENCH_LIBS).
bench_programs += bench/roofline
bench_roofline_SOURCES = bench/roofline.c bench/measure.h
bench_roofline_LDADD = $(AK_BENCH_LIBS)

bench_programs += bench/kernels
bench_kernels_SOURCES = bench/kernels.c bench/measure.h
bench_kernels_LDADD = $(AK_BENCH_LIBS)

if HAVE_OPENCL
bench_programs += bench/opencl
bench_opencl_SOURCES = bench/opencl.c bench/synthetic.h bench/measure.h
bench_opencl_LDADD = $(AK_BENCH_LIBS)
endif

bench_programs += bench/grammar
bench_grammar_SOURCES = bench/grammar.c bench/measure.h
bench_grammar_LDADD = $(AK_BENCH_LIBS)
