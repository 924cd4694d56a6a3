libak_la_SOURCES += \
	src/sample/adaptive_p.c \
	src/sample/adaptive_p.h \
	src/sample/candidates.c \
	src/sample/candidates.h \
	src/sample/chain.c \
	src/sample/chain.h \
	src/sample/distribution.c \
	src/sample/dry.c \
	src/sample/dry.h \
	src/sample/dry_breakers.c \
	src/sample/dry_breakers.h \
	src/sample/history.h \
	src/sample/logprobs.c \
	src/sample/logprobs.h \
	src/sample/mirostat.c \
	src/sample/mirostat.h \
	src/sample/params.c \
	src/sample/params.h \
	src/sample/penalties.c \
	src/sample/penalties.h \
	src/sample/sample.c \
	src/sample/sampler.c \
	src/sample/sampler.h \
	src/sample/sampler_state.h \
	src/sample/temperature.c \
	src/sample/truncation.c \
	src/sample/weight.h
