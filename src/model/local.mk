libak_la_SOURCES += \
	src/model/config.c \
	src/model/decoder.c \
	src/model/families.def \
	src/model/families.h \
	src/model/gemma.c \
	src/model/gemma2.c \
	src/model/gemma3.c \
	src/model/gpt2.c \
	src/model/granite.c \
	src/model/keys.c \
	src/model/llama.c \
	src/model/llama_block.def \
	src/model/mixtral.c \
	src/model/model.h \
	src/model/olmo2.c \
	src/model/phi3.c \
	src/model/qwen2.c \
	src/model/qwen2moe.c \
	src/model/qwen3.c \
	src/model/qwen3moe.c \
	src/model/registry.c \
	src/model/rope.c \
	src/model/smollm3.c \
	src/model/validate.c
