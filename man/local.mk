# akunu-cli.1 is written by hand; a command's page is made of what it says and of the program's own
# --help. configure lists the pages, by src/apps/common/commands.def. A cross build without an
# emulator installs akunu-cli.1 alone.
dist_man_MANS = man/akunu-cli.1
EXTRA_DIST += man/flags.sh man/help.awk man/markdown.awk man/page.awk man/unwrap.awk

if HAVE_MICROHTTPD
dist_man_MANS += man/akunu-server.1
else
EXTRA_DIST += man/akunu-server.1
endif

if RUNNABLE
ak_pages = @AK_COMMAND_PAGES@
nodist_man_MANS = $(ak_pages)
CLEANFILES += $(ak_pages)

$(ak_pages): akunu-cli$(EXEEXT) man/akunu-cli.1 man/help.awk man/page.awk man/unwrap.awk
	$(AM_V_GEN)$(MKDIR_P) man && name=`echo $@ | sed 's,^man/akunu-cli-,,; s,\.1$$,,'` && \
	$(AK_EMULATOR) ./akunu-cli$(EXEEXT) $$name --help | $(AWK) -f $(srcdir)/man/unwrap.awk | \
	$(AWK) -v version=$(PACKAGE_VERSION) -f $(srcdir)/man/help.awk -f $(srcdir)/man/page.awk $(srcdir)/man/akunu-cli.1 - > $@.new && \
	mv $@.new $@
endif
