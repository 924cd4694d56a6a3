libak_la_SOURCES += \
	src/text/toolcall/builder.h \
	src/text/toolcall/call.c \
	src/text/toolcall/content.c \
	src/text/toolcall/detect.c \
	src/text/toolcall/emit.c \
	src/text/toolcall/formats.c \
	src/text/toolcall/grammar.c \
	src/text/toolcall/grammar_markers.c \
	src/text/toolcall/grammar_text.c \
	src/text/toolcall/grammar_values.c \
	src/text/toolcall/harmony.c \
	src/text/toolcall/json_arguments.c \
	src/text/toolcall/json_call.c \
	src/text/toolcall/literal.c \
	src/text/toolcall/match.c \
	src/text/toolcall/parameters.c \
	src/text/toolcall/parser.c \
	src/text/toolcall/parser.h \
	src/text/toolcall/python_call.c \
	src/text/toolcall/scan.c \
	src/text/toolcall/scan.h \
	src/text/toolcall/toolcall.h \
	src/text/toolcall/tools.c \
	src/text/toolcall/utf8_input.c
