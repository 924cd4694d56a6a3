if HAVE_OPENCL
libak_la_SOURCES += \
	opencl/backend.c \
	opencl/backend.h \
	opencl/cl.c \
	opencl/device.c \
	opencl/device.h \
	opencl/launches.c \
	opencl/layout.c \
	opencl/layout.h \
	opencl/measure.c \
	opencl/opencl.h \
	opencl/prepare.c \
	opencl/program.c \
	opencl/record.c \
	opencl/memory.c \
	opencl/run.c \
	opencl/upload.c
nodist_libak_la_SOURCES = opencl/sources.c
endif

ak_opencl_kernels = \
	opencl/kernels/shared.h \
	opencl/kernels/types.cl \
	opencl/kernels/gemv.cl \
	opencl/kernels/gemm.cl \
	opencl/kernels/group.cl \
	opencl/kernels/rows.cl \
	opencl/kernels/recurrent.cl \
	opencl/kernels/kv.cl \
	opencl/kernels/attention.cl \
	opencl/kernels/online_softmax.cl \
	opencl/kernels/scores.cl \
	opencl/kernels/probe.cl
EXTRA_DIST += $(ak_opencl_kernels)
CLEANFILES += opencl/sources.c

# The kernels' texts as C strings, which their device's compiler gets at run time.
opencl/sources.c: $(ak_opencl_kernels)
	@$(MKDIR_P) opencl
	$(AM_V_GEN)for file in $^; do \
	  name=$${file##*/}; \
	  printf '%s\n' "extern const char ak_ocl_source_$${name%.*}[];" "const char ak_ocl_source_$${name%.*}[] ="; \
	  sed -e 's/[\\"]/\\&/g' -e 's/.*/    "&\\n"/' "$$file" || exit 1; \
	  echo '    ;'; \
	done > $@.part && mv $@.part $@
