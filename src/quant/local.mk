libloops_la_SOURCES += \
	src/quant/affine.c \
	src/quant/block.h \
	src/quant/codebook.c \
	src/quant/codebook.h \
	src/quant/float.c \
	src/quant/fp8.c \
	src/quant/indices.h \
	src/quant/iq.c \
	src/quant/kquant.c \
	src/quant/legacy.c \
	src/quant/recode.c \
	src/quant/recode.h \
	src/quant/ternary.c \
	src/quant/type.c \
	src/quant/type.h \
	src/quant/values.c \
	src/quant/vector.c
