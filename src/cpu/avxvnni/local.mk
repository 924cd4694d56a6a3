libak_avxvnni_la_SOURCES = \
	src/cpu/avxvnni/avxvnni.h \
	src/cpu/avxvnni/dot256.c \
	src/cpu/avxvnni/dot32.c \
	src/cpu/avxvnni/probe.c \
	src/cpu/avxvnni/step.h \
	src/cpu/avxvnni/table.c
