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
	src/text/grammar/arrays.c \
	src/text/grammar/build.c src/text/grammar/build.h \
	src/text/grammar/chars.c src/text/grammar/chars.h \
	src/text/grammar/classes.c \
	src/text/grammar/collect.c \
	src/text/grammar/compile.c \
	src/text/grammar/decimal.c \
	src/text/grammar/dfa.c src/text/grammar/dfa.h \
	src/text/grammar/disjoint.c \
	src/text/grammar/forced.c \
	src/text/grammar/formats.c \
	src/text/grammar/gbnf.c \
	src/text/grammar/grammar.c src/text/grammar/grammar.h \
	src/text/grammar/keywords.c \
	src/text/grammar/machine.c src/text/grammar/machine.h \
	src/text/grammar/mask.c \
	src/text/grammar/matcher.c src/text/grammar/matcher.h \
	src/text/grammar/matcher_state.h \
	src/text/grammar/members.c \
	src/text/grammar/number.c \
	src/text/grammar/objects.c \
	src/text/grammar/pattern.c src/text/grammar/pattern.h \
	src/text/grammar/range.c \
	src/text/grammar/reference.c \
	src/text/grammar/schema.c src/text/grammar/schema.h \
	src/text/grammar/schema_parts.h \
	src/text/grammar/settle.c \
	src/text/grammar/strings.c \
	src/text/grammar/subset.c \
	src/text/grammar/terms.c \
	src/text/grammar/trie.c src/text/grammar/trie.h \
	src/text/grammar/values.c \
	src/text/grammar/waiting.c \
	src/text/grammar/words.c \
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
libak_la_SOURCES += \
	src/text/calls/arguments_body.c \
	src/text/calls/call.c \
	src/text/calls/detect.c \
	src/text/calls/emit.c \
	src/text/calls/format.h src/text/calls/formats.c \
	src/text/calls/grammar.c src/text/calls/grammar.h \
	src/text/calls/harmony.c \
	src/text/calls/intake.c \
	src/text/calls/json_body.c \
	src/text/calls/literal.c src/text/calls/literal.h \
	src/text/calls/match.c \
	src/text/calls/message.c \
	src/text/calls/parameters_body.c \
	src/text/calls/prose.c \
	src/text/calls/python_body.c \
	src/text/calls/reply.c src/text/calls/reply.h \
	src/text/calls/rule_markers.c src/text/calls/rule_text.c \
	src/text/calls/rule_values.c \
	src/text/calls/rules.h \
	src/text/calls/scan.c src/text/calls/scan.h \
	src/text/calls/state.h \
	src/text/calls/tools.c src/text/calls/tools.h \
	src/text/grammar/schema_build.c src/text/grammar/schema_build.h
