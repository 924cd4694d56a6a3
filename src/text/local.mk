libak_la_SOURCES += \
	src/text/bpe.c \
	src/text/buffer.h \
	src/text/bytes.c \
	src/text/chat.c src/text/chat.h \
	src/text/chat_parts.h \
	src/text/chat_render.c \
	src/text/chat_source.c \
	src/text/charsmap.c src/text/charsmap.h \
	src/text/detokenize.c \
	src/text/export.c src/text/export.h \
	src/text/jinja/arena.c src/text/jinja/arena.h \
	src/text/jinja/attribute.c \
	src/text/jinja/call.c \
	src/text/jinja/case.c src/text/jinja/case.h \
	src/text/jinja/compare.c \
	src/text/jinja/dict.c \
	src/text/jinja/eval.c \
	src/text/jinja/exec.c src/text/jinja/exec.h \
	src/text/jinja/expression.c \
	src/text/jinja/filters_choice.c \
	src/text/jinja/filters_layout.c \
	src/text/jinja/filters_list.c \
	src/text/jinja/filters_number.c \
	src/text/jinja/filters_order.c \
	src/text/jinja/filters_text.c \
	src/text/jinja/format.c src/text/jinja/format.h \
	src/text/jinja/format_value.c \
	src/text/jinja/functions.c \
	src/text/jinja/json.c \
	src/text/jinja/lexer.c \
	src/text/jinja/loop.c \
	src/text/jinja/markup.c src/text/jinja/markup.h \
	src/text/jinja/methods.c \
	src/text/jinja/methods_query.c \
	src/text/jinja/methods_split.c \
	src/text/jinja/methods_string.c \
	src/text/jinja/names.c \
	src/text/jinja/number.c \
	src/text/jinja/operate.c \
	src/text/jinja/parser.c src/text/jinja/parser.h \
	src/text/jinja/percent.c \
	src/text/jinja/repr.c \
	src/text/jinja/scope.c \
	src/text/jinja/state.c src/text/jinja/state.h \
	src/text/jinja/string.c src/text/jinja/string.h \
	src/text/jinja/template.c \
	src/text/jinja/tests.c \
	src/text/jinja/unescape.c \
	src/text/jinja/value.c src/text/jinja/value.h \
	src/text/jinja/builtins.h \
	src/text/jinja/filters.h \
	src/text/jinja/jinja.h \
	src/text/jinja/node.h \
	src/text/jinja/text.h \
	src/text/jinja/token.h \
	src/text/json_core.c src/text/json_core.h \
	src/text/json_parts.c src/text/json_parts.h \
	src/text/json_tokenizer.c \
	src/text/merge.c src/text/merge.h \
	src/text/normalize.c \
	src/text/pieces.c src/text/pieces.h \
	src/text/pipeline.c src/text/pipeline.h \
	src/text/pipeline_gguf.c \
	src/text/pre_name.c \
	src/text/pretokenize.c src/text/pretokenize.h \
	src/text/regex.c src/text/regex.h \
	src/text/rules.c src/text/rules.h \
	src/text/sentencepiece.c \
	src/text/specials.c src/text/specials.h \
	src/text/split.c \
	src/text/spm.c \
	src/text/state.h \
	src/text/stop.c \
	src/text/tokenizer.c src/text/tokenizer.h \
	src/text/trie.c src/text/trie.h \
	src/text/unicode.c src/text/unicode.h \
	src/text/unigram.c \
	src/text/utf8.c src/text/utf8.h \
	src/text/wordpiece.c
