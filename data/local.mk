# Examples, to be copied: a file that is found must be meant. Programs: docs/c-api.md.
exampledir = $(docdir)/examples
dist_example_DATA = data/akunu-server.service data/akunu-server.socket data/config.yaml data/profile.yaml examples/batch.c examples/chat.c examples/embed.c \
	examples/json.c examples/schedule.c examples/simple.c examples/tools.c examples/transcribe.c

# Weights of Silero VAD, found by transcribe --vad; configure links them into the build folder.
vaddir = $(pkgdatadir)/vad
dist_vad_DATA = data/vad/LICENSE data/vad/README data/vad/silero-v6.2.0.bin

# Made by the program of its own tables. A cross build without an emulator installs none.
if RUNNABLE
bashcompletiondir = $(AK_BASH_COMPLETION_DIR)
nodist_bashcompletion_DATA = data/completion/akunu-cli
zshcompletiondir = $(AK_ZSH_COMPLETION_DIR)
nodist_zshcompletion_DATA = data/completion/_akunu-cli
fishcompletiondir = $(AK_FISH_COMPLETION_DIR)
nodist_fishcompletion_DATA = data/completion/akunu-cli.fish
CLEANFILES += $(nodist_bashcompletion_DATA) $(nodist_zshcompletion_DATA) $(nodist_fishcompletion_DATA)

ak_self = $(AK_EMULATOR) ./akunu-cli$(EXEEXT)
ak_keep = > $@.new && mv $@.new $@
data/completion/akunu-cli: akunu-cli$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(ak_self) completion bash $(ak_keep)
data/completion/_akunu-cli: akunu-cli$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(ak_self) completion zsh $(ak_keep)
data/completion/akunu-cli.fish: akunu-cli$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(ak_self) completion fish $(ak_keep)
endif
