if HAVE_OPENCL
libak_la_SOURCES += \
	src/opencl/backend.c \
	src/opencl/backend.h \
	src/opencl/cl.c \
	src/opencl/cl.h \
	src/opencl/device.c \
	src/opencl/device.h \
	src/opencl/launches.c \
	src/opencl/layout.c \
	src/opencl/layout.h \
	src/opencl/measure.c \
	src/opencl/opencl.h \
	src/opencl/prepare.c \
	src/opencl/program.c \
	src/opencl/program.h \
	src/opencl/record.c \
	src/opencl/room.c \
	src/opencl/run.c \
	src/opencl/upload.c
nodist_libak_la_SOURCES = src/opencl/sources.c
endif

ak_opencl_kernels = \
	src/opencl/kernels/shared.h \
	src/opencl/kernels/types.cl \
	src/opencl/kernels/gemv.cl \
	src/opencl/kernels/gemm.cl \
	src/opencl/kernels/group.cl \
	src/opencl/kernels/rows.cl \
	src/opencl/kernels/recurrent.cl \
	src/opencl/kernels/kv.cl \
	src/opencl/kernels/attention.cl \
	src/opencl/kernels/attend.cl \
	src/opencl/kernels/probe.cl
EXTRA_DIST += $(ak_opencl_kernels)
CLEANFILES += src/opencl/sources.c

# The kernels' texts as C strings, which their device's compiler gets at run time.
src/opencl/sources.c: $(ak_opencl_kernels)
	@$(MKDIR_P) src/opencl
	$(AM_V_GEN)for file in $^; do \
	  name=$${file##*/}; \
	  printf '%s\n' "extern const char ak_ocl_source_$${name%.*}[];" "const char ak_ocl_source_$${name%.*}[] ="; \
	  sed -e 's/[\\"]/\\&/g' -e 's/.*/    "&\\n"/' "$$file" || exit 1; \
	  echo '    ;'; \
	done > $@.part && mv $@.part $@
