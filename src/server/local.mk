akunu_server_SOURCES += \
	src/server/answer.c \
	src/server/anthropic.c \
	src/server/chat.c \
	src/server/chat.h \
	src/server/completion.c \
	src/server/embed.c \
	src/server/embedder.c \
	src/server/embedder.h \
	src/server/form.c \
	src/server/form.h \
	src/server/form_in.c \
	src/server/headers.c \
	src/server/headers.h \
	src/server/http.c \
	src/server/http.h \
	src/server/http_deadlines.c \
	src/server/http_exchange.c \
	src/server/http_internal.h \
	src/server/http_listen.c \
	src/server/job.c \
	src/server/job.h \
	src/server/json_in.c \
	src/server/keys.c \
	src/server/log.c \
	src/server/main.c \
	src/server/memory.c \
	src/server/memory.h \
	src/server/metrics.c \
	src/server/model.c \
	src/server/models.c \
	src/server/native.c \
	src/server/ollama.c \
	src/server/openai.c \
	src/server/openai_chat.c \
	src/server/openai_completions.c \
	src/server/page.c \
	src/server/params.c \
	src/server/prompt.c \
	src/server/receipt.c \
	src/server/rerank.c \
	src/server/responses.c \
	src/server/route.c \
	src/server/server.h \
	src/server/slots.c \
	src/server/speech.c \
	src/server/speech.h \
	src/server/sse.c \
	src/server/systemd.c \
	src/server/tls.c \
	src/server/tls.h \
	src/server/transcriptions.c \
	src/server/vad.c \
	src/server/worker.c

# The chat page as a C string, a line each.
BUILT_SOURCES = src/server/page/index.inc
CLEANFILES += src/server/page/index.inc
src/server/page/index.inc: src/server/page/index.html
	$(AM_V_GEN)$(MKDIR_P) src/server/page && sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $(srcdir)/src/server/page/index.html > $@.new && mv $@.new $@
src/server/akunu_server-page.$(OBJEXT): src/server/page/index.inc
