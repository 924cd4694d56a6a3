libak_la_SOURCES += \
	src/quant/a5.c \
	src/quant/a8.c \
	src/quant/affine.c \
	src/quant/bf16.c \
	src/quant/block.h \
	src/quant/f16.c \
	src/quant/float.c \
	src/quant/fp8.c \
	src/quant/iq.c \
	src/quant/iq4_xs.c \
	src/quant/kquant.c \
	src/quant/legacy.c \
	src/quant/mxfp4.c \
	src/quant/q3_k.c \
	src/quant/q4_1.c \
	src/quant/q4_k.c \
	src/quant/q5_0.c \
	src/quant/q5_1.c \
	src/quant/q5_k.c \
	src/quant/q6_k.c \
	src/quant/q8_0.c \
	src/quant/stored.c \
	src/quant/type.c \
	src/quant/type.h
