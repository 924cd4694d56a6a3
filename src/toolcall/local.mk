libak_la_SOURCES += \
	src/toolcall/builder.h \
	src/toolcall/call.c \
	src/toolcall/content.c \
	src/toolcall/detect.c \
	src/toolcall/emit.c \
	src/toolcall/formats.c \
	src/toolcall/grammar.c \
	src/toolcall/grammar_markers.c \
	src/toolcall/grammar_text.c \
	src/toolcall/grammar_values.c \
	src/toolcall/harmony.c \
	src/toolcall/json_arguments.c \
	src/toolcall/json_call.c \
	src/toolcall/literal.c \
	src/toolcall/match.c \
	src/toolcall/parameters.c \
	src/toolcall/parser.c \
	src/toolcall/parser.h \
	src/toolcall/python_call.c \
	src/toolcall/scan.c \
	src/toolcall/scan.h \
	src/toolcall/toolcall.h \
	src/toolcall/tools.c \
	src/toolcall/utf8_input.c
