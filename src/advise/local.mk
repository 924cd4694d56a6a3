libak_la_SOURCES += \
	src/advise/advise.c \
	src/advise/advise.h \
	src/advise/quality.c
