# akunu-cli.1 is written by hand; a command's page is made of what it says and of the
# program's own --help. A cross build without an emulator installs akunu-cli.1 alone.
dist_man_MANS = man/akunu-cli.1
EXTRA_DIST += man/flags.sh man/help.awk man/markdown.awk man/page.awk man/unwrap.awk

if HAVE_MICROHTTPD
dist_man_MANS += man/akunu-server.1
else
EXTRA_DIST += man/akunu-server.1
endif

if RUNNABLE
ak_pages = man/akunu-cli-run.1 man/akunu-cli-chat.1 man/akunu-cli-tokenize.1 man/akunu-cli-detokenize.1 man/akunu-cli-inspect.1 \
	man/akunu-cli-logits.1 man/akunu-cli-transcribe.1 man/akunu-cli-perplexity.1 man/akunu-cli-eval.1 man/akunu-cli-report.1 man/akunu-cli-verify.1 man/akunu-cli-embed.1 man/akunu-cli-convert.1 man/akunu-cli-quantize.1 man/akunu-cli-bench.1 \
	man/akunu-cli-models.1 man/akunu-cli-cache.1 man/akunu-cli-grammar-check.1 man/akunu-cli-apply-template.1 man/akunu-cli-completion.1 man/akunu-cli-list.1 \
	man/akunu-cli-show.1 man/akunu-cli-infill.1 man/akunu-cli-pull.1 man/akunu-cli-imatrix.1 man/akunu-cli-advise.1 man/akunu-cli-compress.1
nodist_man_MANS = $(ak_pages)
CLEANFILES += $(ak_pages)

$(ak_pages): akunu-cli$(EXEEXT) man/akunu-cli.1 man/help.awk man/page.awk man/unwrap.awk
	$(AM_V_GEN)$(MKDIR_P) man && name=`echo $@ | sed 's,^man/akunu-cli-,,; s,\.1$$,,'` && \
	$(AK_EMULATOR) ./akunu-cli$(EXEEXT) $$name --help | $(AWK) -f $(srcdir)/man/unwrap.awk | \
	$(AWK) -v version=$(PACKAGE_VERSION) -f $(srcdir)/man/help.awk -f $(srcdir)/man/page.awk $(srcdir)/man/akunu-cli.1 - > $@.new && \
	mv $@.new $@
endif
