# The programs do not see the library's internals, so they compile wide.c too.
libapp_a_SOURCES += \
	src/apps/common/adapters.c \
	src/apps/common/chat_template.c \
	src/apps/common/clips.c \
	src/apps/common/clips.h \
	src/apps/common/configuration.c \
	src/apps/common/configuration.h \
	src/apps/common/configuration_files.c \
	src/apps/common/conversation.c \
	src/apps/common/conversation.h \
	src/apps/common/help.c \
	src/apps/common/input.c \
	src/apps/common/input.h \
	src/apps/common/instead.c \
	src/apps/common/json.c \
	src/apps/common/json_text.c \
	src/apps/common/json_text.h \
	src/apps/common/load.c \
	src/apps/common/load.h \
	src/apps/common/message.c \
	src/apps/common/message.h \
	src/apps/common/model_path.c \
	src/apps/common/number.c \
	src/apps/common/options.c \
	src/apps/common/commands.def \
	src/apps/common/options.def \
	src/apps/common/options.h \
	src/apps/common/options_config.c \
	src/apps/common/options_environment.c \
	src/apps/common/options_operands.c \
	src/apps/common/options_parse.c \
	src/apps/common/options_values.c \
	src/apps/common/output.c \
	src/apps/common/output.h \
	src/apps/common/progress.c \
	src/apps/common/prompt.c \
	src/apps/common/prompt.h \
	src/apps/common/ranks.c \
	src/apps/common/ranks.h \
	src/apps/common/reasoning.c \
	src/apps/common/receipt.c \
	src/apps/common/receipt.h \
	src/apps/common/remote.c \
	src/apps/common/remote.h \
	src/apps/common/sampling.c \
	src/apps/common/sampling.h \
	src/apps/common/suggest.c \
	src/apps/common/transcript.c \
	src/apps/common/transcript.h \
	src/apps/common/transcript_full.c \
	src/apps/common/vad_path.c \
	src/base/json/wide.c \
	src/base/json/wide.h

if HAVE_CURL
libapp_a_SOURCES += \
	src/apps/common/pull/gguf_header.c \
	src/apps/common/pull/gguf_header.h \
	src/apps/common/pull/http.c \
	src/apps/common/pull/http.h \
	src/apps/common/pull/hub.c \
	src/apps/common/pull/hub.h \
	src/apps/common/pull/hub_select.c \
	src/apps/common/pull/hub_token.c \
	src/apps/common/pull/part.c \
	src/apps/common/pull/part.h \
	src/apps/common/pull/probe.c \
	src/apps/common/pull/pull.c \
	src/apps/common/pull/pull.h \
	src/apps/common/pull/pull_plan.c \
	src/apps/common/pull/pulled.c \
	src/apps/common/pull/remote_header.c \
	src/apps/common/pull/transfer.c \
	src/apps/common/pull/transfer.h \
	src/apps/common/pull/url.c
endif
