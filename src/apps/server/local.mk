akunu_server_SOURCES += \
	src/apps/server/answer.c \
	src/apps/server/api.h \
	src/apps/server/anthropic.c \
	src/apps/server/chat.c \
	src/apps/server/chat.h \
	src/apps/server/completion.c \
	src/apps/server/embed.c \
	src/apps/server/embedder.c \
	src/apps/server/embedder.h \
	src/apps/server/form.c \
	src/apps/server/form.h \
	src/apps/server/form_in.c \
	src/apps/server/headers.c \
	src/apps/server/headers.h \
	src/apps/server/http.c \
	src/apps/server/http.h \
	src/apps/server/http_deadlines.c \
	src/apps/server/http_exchange.c \
	src/apps/server/http_internal.h \
	src/apps/server/http_listen.c \
	src/apps/server/job.c \
	src/apps/server/job.h \
	src/apps/server/json_in.c \
	src/apps/server/keys.c \
	src/apps/server/log.c \
	src/apps/server/main.c \
	src/apps/server/memory.c \
	src/apps/server/memory.h \
	src/apps/server/metrics.c \
	src/apps/server/model.c \
	src/apps/server/models.c \
	src/apps/server/native.c \
	src/apps/server/ollama.c \
	src/apps/server/openai.c \
	src/apps/server/openai_chat.c \
	src/apps/server/openai_completions.c \
	src/apps/server/page.c \
	src/apps/server/params.c \
	src/apps/server/prompt.c \
	src/apps/server/receipt.c \
	src/apps/server/rerank.c \
	src/apps/server/responses.c \
	src/apps/server/route.c \
	src/apps/server/server.h \
	src/apps/server/slots.c \
	src/apps/server/speech.c \
	src/apps/server/speech.h \
	src/apps/server/sse.c \
	src/apps/server/systemd.c \
	src/apps/server/tls.c \
	src/apps/server/tls.h \
	src/apps/server/transcriptions.c \
	src/apps/server/vad.c \
	src/apps/server/worker.c

# The chat page as a C string, a line each.
BUILT_SOURCES = src/apps/server/page/index.inc
CLEANFILES += src/apps/server/page/index.inc
src/apps/server/page/index.inc: src/apps/server/page/index.html
	$(AM_V_GEN)$(MKDIR_P) src/apps/server/page && sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $(srcdir)/src/apps/server/page/index.html > $@.new && mv $@.new $@
src/apps/server/akunu_server-page.$(OBJEXT): src/apps/server/page/index.inc
