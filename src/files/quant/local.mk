libloops_la_SOURCES += \
	src/files/quant/affine.c \
	src/files/quant/block.h \
	src/files/quant/codebook.c \
	src/files/quant/codebook.h \
	src/files/quant/float.c \
	src/files/quant/fp8.c \
	src/files/quant/indices.h \
	src/files/quant/iq.c \
	src/files/quant/kquant.c \
	src/files/quant/legacy.c \
	src/files/quant/recode.c \
	src/files/quant/recode.h \
	src/files/quant/ternary.c \
	src/files/quant/type.c \
	src/files/quant/type.h \
	src/files/quant/types.def \
	src/files/quant/values.c \
	src/files/quant/vector.c
