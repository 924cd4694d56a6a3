libak_la_SOURCES += \
	src/conversion/advise/advise.c \
	src/conversion/advise/advise.h \
	src/conversion/advise/quality.c
