libak_la_SOURCES += \
	src/text/bpe.c \
	src/text/detokenize.c \
	src/text/merge.c src/text/merge.h \
	src/text/pieces.c src/text/pieces.h \
	src/text/pretokenize.c src/text/pretokenize.h \
	src/text/regex.c src/text/regex.h \
	src/text/rules.c src/text/rules.h \
	src/text/specials.c src/text/specials.h \
	src/text/spm.c \
	src/text/state.h \
	src/text/stop.c \
	src/text/tokenizer.c src/text/tokenizer.h \
	src/text/utf8.c src/text/utf8.h
