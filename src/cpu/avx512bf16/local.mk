libak_avx512bf16_la_SOURCES = \
	src/cpu/avx512bf16/avx512bf16.h \
	src/cpu/avx512bf16/panel_bf16.c \
	src/cpu/avx512bf16/round.h \
	src/cpu/avx512bf16/table.c
