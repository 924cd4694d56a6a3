# Tests: tests/LAYER/test_NAME.c is a program of libcheck, one line here. Without a line of
# its own it is linked with LDADD below. tests/house.sh looks at the house, not at a layer.
check_LTLIBRARIES += tests/libfiles.la
tests_libfiles_la_SOURCES = tests/gguf_files.c tests/gguf_files.h tests/st_files.c tests/st_files.h
noinst_HEADERS += tests/test.h tests/golden_model.h tests/table_rig.h tests/fake_backend.h tests/last_logits.h tests/load.h tests/locks.h tests/out_of_memory.h tests/process.h tests/speech_clip.h tests/store_header.h tests/engine/backends/texts.h tests/speech/search/golden.h \
	tests/api/failure.h tests/api/session.h tests/speech/audio/clips.h tests/apps/server/client.h tests/conversion/changes.h tests/conversion/convert/models.h
LDADD = tests/libfiles.la $(AK_TEST_LIBS)

check_PROGRAMS += tests/conversion/allocate/test_allocate
check_PROGRAMS += tests/api/test_adapter
check_PROGRAMS += tests/api/test_complete
check_PROGRAMS += tests/api/test_core
check_PROGRAMS += tests/api/test_evict
check_PROGRAMS += tests/api/test_files
check_PROGRAMS += tests/api/test_lifetime
check_PROGRAMS += tests/api/test_model
check_PROGRAMS += tests/api/test_rope
check_PROGRAMS += tests/api/test_sampler
check_PROGRAMS += tests/api/test_schedule
check_PROGRAMS += tests/api/test_shared
check_PROGRAMS += tests/api/test_sizes
check_PROGRAMS += tests/api/test_text
if HAVE_AUDIO
check_PROGRAMS += tests/speech/audio/test_containers
check_PROGRAMS += tests/speech/audio/test_files
endif
check_PROGRAMS += tests/speech/audio/test_mel
check_PROGRAMS += tests/engine/backend/test_profile
check_PROGRAMS += tests/engine/backends/test_ranks
check_PROGRAMS += tests/engine/backends/test_split
check_PROGRAMS += tests/base/test_base
check_PROGRAMS += tests/base/test_utf8
check_PROGRAMS += tests/apps/cli/test_history
check_PROGRAMS += tests/apps/cli/test_message
check_PROGRAMS += tests/apps/cli/test_wrap
check_PROGRAMS += tests/conversion/compress/test_compress
check_PROGRAMS += tests/conversion/convert/test_convert
check_PROGRAMS += tests/conversion/convert/test_gguf_write
check_PROGRAMS += tests/conversion/convert/test_importance
check_PROGRAMS += tests/conversion/convert/test_metadata
check_PROGRAMS += tests/conversion/convert/test_quantize
check_PROGRAMS += tests/conversion/convert/test_speech
check_PROGRAMS += tests/engine/cpu/test_kernels
check_PROGRAMS += tests/engine/cpu/test_kernels_hash
check_PROGRAMS += tests/engine/cpu/test_output
check_PROGRAMS += tests/engine/cpu/test_residual
check_PROGRAMS += tests/engine/cpu/test_steps
check_PROGRAMS += tests/engine/dist/test_dist
check_PROGRAMS += tests/engine/generate/test_completion
check_PROGRAMS += tests/engine/generate/test_parallel
check_PROGRAMS += tests/engine/generate/test_reasoning
check_PROGRAMS += tests/engine/generate/test_speculate
check_PROGRAMS += tests/engine/generate/test_steady
check_PROGRAMS += tests/engine/generate/test_stops
check_PROGRAMS += tests/text/grammar/test_grammar
check_PROGRAMS += tests/files/weights/test_role
check_PROGRAMS += tests/opencl/test_opencl
check_PROGRAMS += tests/engine/pack/test_adapter
check_PROGRAMS += tests/engine/pack/test_bind
check_PROGRAMS += tests/engine/pack/test_cache
check_PROGRAMS += tests/engine/persist/test_prompt_cache
check_PROGRAMS += tests/files/quant/test_quant
check_PROGRAMS += tests/conversion/quantize/test_quantize
check_PROGRAMS += tests/engine/sample/test_naive
check_PROGRAMS += tests/engine/sample/test_sampler
check_PROGRAMS += tests/engine/sample/test_samplers
check_PROGRAMS += tests/engine/sample/test_sampling
check_PROGRAMS += tests/engine/schedule/test_schedule
check_PROGRAMS += tests/apps/server/test_answers
check_PROGRAMS += tests/apps/server/test_audio
check_PROGRAMS += tests/apps/server/test_hostile
check_PROGRAMS += tests/apps/server/test_life
check_PROGRAMS += tests/apps/server/test_models
check_PROGRAMS += tests/apps/server/test_receipt
check_PROGRAMS += tests/apps/server/test_rerank
check_PROGRAMS += tests/apps/server/test_server
check_PROGRAMS += tests/apps/server/test_slots
if HAVE_MICROHTTPD
check_PROGRAMS += tests/apps/server/test_tls
endif
check_PROGRAMS += tests/engine/session/test_calibration
check_PROGRAMS += tests/engine/session/test_constraint
check_PROGRAMS += tests/engine/session/test_embed
check_PROGRAMS += tests/engine/session/test_encode
check_PROGRAMS += tests/engine/session/test_score
check_PROGRAMS += tests/engine/session/test_kv
check_PROGRAMS += tests/engine/session/test_load
check_PROGRAMS += tests/engine/session/test_session
check_PROGRAMS += tests/speech/transcribe/test_stream
check_PROGRAMS += tests/speech/transcribe/test_transcribe
check_PROGRAMS += tests/speech/vad/test_vad
check_PROGRAMS += tests/speech/search/test_speech
check_PROGRAMS += tests/speech/search/test_words
check_PROGRAMS += tests/files/store/test_evict
check_PROGRAMS += tests/text/template/test_jinja
check_PROGRAMS += tests/text/tokenizer/test_fim
check_PROGRAMS += tests/text/tokenizer/test_tokenizer
check_PROGRAMS += tests/text/tokenizer/test_tokenizer_json
check_PROGRAMS += tests/text/toolcall/test_call_grammar
check_PROGRAMS += tests/text/toolcall/test_calls
check_PROGRAMS += tests/files/weights/test_checkpoint
check_PROGRAMS += tests/files/weights/test_gguf
check_PROGRAMS += tests/files/weights/test_gguf_checks
check_PROGRAMS += tests/files/weights/test_config
check_PROGRAMS += tests/files/weights/test_hf
check_PROGRAMS += tests/files/weights/test_hf_quant
check_PROGRAMS += tests/files/weights/test_npy
check_PROGRAMS += tests/files/weights/test_npy_dir
check_PROGRAMS += tests/files/weights/test_whisper_ggml

# Compiled with headers of an older version of akunu, which come before the library's own.
tests_api_test_sizes_CPPFLAGS = -Itests/api/older $(AM_CPPFLAGS)
tests/api/test_sizes-test_sizes.$(OBJEXT): tests/api/older.stamp
CLEANFILES += tests/api/older.stamp tests/api/older/akunu/*.h tests/api/older/akunu/*.def
EXTRA_DIST += tests/api/older_header.awk

tests/api/older.stamp: $(akunuinclude_HEADERS) tests/api/older_header.awk
	@$(MKDIR_P) tests/api/older/akunu
	$(AM_V_GEN)for header in $(akunuinclude_HEADERS); do \
	  $(AWK) -f $(srcdir)/tests/api/older_header.awk $(srcdir)/$$header \
	    >tests/api/older/akunu/`basename $$header` || exit 1; \
	done && touch $@

# The command's own sources, of which no library has the functions.
tests_apps_cli_test_history_SOURCES = tests/apps/cli/test_history.c src/apps/cli/chat/history.c
tests_apps_cli_test_wrap_SOURCES = tests/apps/cli/test_wrap.c src/apps/cli/run/wrap.c src/apps/common/output.c src/apps/common/message.c
tests_apps_cli_test_message_SOURCES = tests/apps/cli/test_message.c src/apps/common/message.c

# A client that knows TLS.
tests_apps_server_test_tls_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) $(MICROHTTPD_CFLAGS)
tests_apps_server_test_tls_LDADD = $(LDADD) $(MICROHTTPD_LIBS)

# By name, for tests/golden/json_schema_suite.py.
EXTRA_PROGRAMS += tests/text/grammar/grammar_batch

# By name, for tests/golden/clips.py and audio_clips.py.
EXTRA_PROGRAMS += tests/speech/audio/decode

# The examples, which tests/api/test_examples.sh runs; leaks.c counts what they leave allocated.
ak_examples = examples/batch examples/chat examples/embed examples/json examples/schedule examples/simple examples/tools \
	examples/transcribe
EXTRA_PROGRAMS += $(ak_examples)
check_DATA += $(ak_examples)
CLEANFILES += $(ak_examples)
ak_example_ldflags = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=aligned_alloc \
	-Wl,--wrap=free
examples_batch_SOURCES = examples/batch.c tests/api/leaks.c
examples_batch_LDFLAGS = $(ak_example_ldflags)
examples_chat_SOURCES = examples/chat.c tests/api/leaks.c
examples_chat_LDFLAGS = $(ak_example_ldflags)
examples_embed_SOURCES = examples/embed.c tests/api/leaks.c
examples_embed_LDFLAGS = $(ak_example_ldflags)
examples_json_SOURCES = examples/json.c tests/api/leaks.c
examples_json_LDFLAGS = $(ak_example_ldflags)
examples_schedule_SOURCES = examples/schedule.c tests/api/leaks.c
examples_schedule_LDFLAGS = $(ak_example_ldflags)
examples_simple_SOURCES = examples/simple.c tests/api/leaks.c
examples_simple_LDFLAGS = $(ak_example_ldflags)
examples_tools_SOURCES = examples/tools.c tests/api/leaks.c
examples_tools_LDFLAGS = $(ak_example_ldflags)
examples_transcribe_SOURCES = examples/transcribe.c tests/api/leaks.c
examples_transcribe_LDFLAGS = $(ak_example_ldflags)

# Calls that fail or are counted at will.
ak_wrap_memory = -Wl,--wrap=ak_alloc -Wl,--wrap=ak_realloc -Wl,--wrap=ak_strndup
tests_speech_audio_test_files_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pread -Wl,--wrap=write -Wl,--wrap=sf_open_virtual
tests_speech_search_test_speech_LDFLAGS = $(AM_LDFLAGS) $(ak_wrap_memory)
tests_speech_vad_test_vad_LDFLAGS = $(AM_LDFLAGS) $(ak_wrap_memory)
tests_speech_transcribe_test_stream_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ak_transcribe
tests_engine_pack_test_cache_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=pwrite -Wl,--wrap=fallocate -Wl,--wrap=fsync -Wl,--wrap=futimens -Wl,--wrap=renameat
tests_conversion_convert_test_gguf_write_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=open -Wl,--wrap=close -Wl,--wrap=access -Wl,--wrap=write -Wl,--wrap=fallocate -Wl,--wrap=linkat \
	-Wl,--wrap=rename -Wl,--wrap=fsync -Wl,--wrap=fstatvfs -Wl,--wrap=getrandom
ak_wrap_locks = -Wl,--wrap=pthread_mutex_lock -Wl,--wrap=pthread_mutex_unlock
tests_conversion_allocate_test_allocate_LDFLAGS = $(AM_LDFLAGS) $(ak_wrap_memory)
tests_conversion_compress_test_compress_LDFLAGS = $(AM_LDFLAGS) $(ak_wrap_memory) -Wl,--wrap=write -Wl,--wrap=fsync \
	-Wl,--wrap=fdatasync -Wl,--wrap=renameat -Wl,--wrap=unlinkat -Wl,--wrap=read -Wl,--wrap=ftruncate
tests_speech_transcribe_test_transcribe_LDFLAGS = $(AM_LDFLAGS) $(ak_wrap_locks)
tests_engine_backends_test_ranks_LDFLAGS = $(AM_LDFLAGS) $(ak_wrap_memory) $(ak_wrap_locks)
tests_engine_dist_test_dist_LDFLAGS = $(AM_LDFLAGS) $(ak_wrap_memory) $(ak_wrap_locks) -Wl,--wrap=connect -Wl,--wrap=poll
tests_engine_generate_test_steady_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=aligned_alloc -Wl,--wrap=free \
	-Wl,--wrap=mmap -Wl,--wrap=munmap \
	-Wl,--wrap=pthread_mutex_lock -Wl,--wrap=pthread_cond_wait -Wl,--wrap=pthread_rwlock_rdlock -Wl,--wrap=pthread_once \
	-Wl,--wrap=strcmp -Wl,--wrap=strncmp -Wl,--wrap=memcmp -Wl,--wrap=strlen -Wl,--wrap=getenv
tests_engine_persist_test_prompt_cache_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fsync
tests_engine_schedule_test_schedule_LDFLAGS = $(AM_LDFLAGS) $(ak_wrap_memory)
tests_engine_session_test_session_LDFLAGS = $(AM_LDFLAGS) $(ak_wrap_memory)
tests_files_store_test_evict_LDFLAGS = $(AM_LDFLAGS) $(ak_wrap_memory) -Wl,--wrap=fstatvfs -Wl,--wrap=fstatfs -Wl,--wrap=fdopendir

# The sources of the AVX-VNNI ISA once more, for machines with AVX-512 (tests/engine/cpu/evex.h).
noinst_HEADERS += tests/engine/cpu/evex.h
if HAVE_EVEX
check_LTLIBRARIES += tests/engine/cpu/libevex.la
tests_engine_cpu_libevex_la_SOURCES = src/engine/cpu/tmpl/dot32_v256.c src/engine/cpu/tmpl/dot256_v256.c
tests_engine_cpu_libevex_la_CPPFLAGS = $(AM_CPPFLAGS) -DAK_ISA=evex -DAK_STEP_H='"engine/cpu/avxvnni/step.h"'
tests_engine_cpu_libevex_la_CFLAGS = $(AM_CFLAGS) $(AK_KERNEL_CFLAGS) -mavx2 -mfma -mf16c -mavx512vl -mavx512vnni
AK_TEST_EVEX = tests/engine/cpu/libevex.la
endif
tests_engine_cpu_test_kernels_LDADD = $(AK_TEST_EVEX) $(LDADD)
tests_engine_cpu_test_kernels_hash_LDADD = $(AK_TEST_EVEX) $(LDADD)

# AMX's kernels over a model of its tile unit, for machines without one.
if HAVE_AMX
check_PROGRAMS += tests/engine/cpu/test_amx
check_LTLIBRARIES += libak_amx_model.la
libak_amx_model_la_SOURCES = src/engine/cpu/amx/unpack.c src/engine/cpu/amx/panel_bf16.c src/engine/cpu/amx/probe.c src/engine/cpu/amx/panel_i8_256.c \
	src/engine/cpu/amx/panel_i8_32.c tests/engine/cpu/amx/tile_unit.h
libak_amx_model_la_CFLAGS = $(AM_CFLAGS) $(AK_KERNEL_CFLAGS) $(AK_AVX512_CFLAGS) -mavx512bf16
libak_amx_model_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests/engine/cpu/amx -DAK_ISA=amx_model
tests_engine_cpu_test_amx_LDADD = libak_amx_model.la $(LDADD)
endif
EXTRA_DIST += tests/engine/cpu/test_amx.c tests/engine/cpu/amx/tile_unit.h

# Ranks that are threads, over a module that stands for Open MPI, so that neither it nor mpirun is needed.
check_DATA += tests/engine/dist/fake_mpi.so
tests_engine_dist_test_dist_CPPFLAGS = $(AM_CPPFLAGS) -DAK_FAKE_MPI='"$(abs_builddir)/tests/engine/dist/fake_mpi.so"'
EXTRA_tests_engine_dist_test_dist_DEPENDENCIES = tests/engine/dist/fake_mpi.so
EXTRA_DIST += tests/engine/dist/fake_mpi.c tests/engine/dist/fake_mpi.h
CLEANFILES += tests/engine/dist/fake_mpi.so

tests/engine/dist/fake_mpi.so: tests/engine/dist/fake_mpi.c tests/engine/dist/fake_mpi.h
	@$(MKDIR_P) tests/engine/dist
	$(AM_V_CC)$(CC) $(CPPFLAGS) $(CFLAGS) -shared -fPIC -fvisibility=hidden -pthread -I$(srcdir) -o $@ \
	  $(srcdir)/tests/engine/dist/fake_mpi.c

# The OpenCL backend's host code over a loader that fails at will, so that no driver is needed.
# A module, never a convenience library, whatever libraries this build makes.
if HAVE_OPENCL
check_PROGRAMS += tests/opencl/test_opencl_host
check_DATA += tests/opencl/fake_opencl.so
tests_opencl_test_opencl_host_CPPFLAGS = $(AM_CPPFLAGS) -DAK_FAKE_OPENCL='"$(abs_builddir)/tests/opencl/fake_opencl.so"'
EXTRA_tests_opencl_test_opencl_host_DEPENDENCIES = tests/opencl/fake_opencl.so
endif
EXTRA_DIST += tests/opencl/test_opencl_host.c tests/opencl/fake_opencl.c tests/opencl/fake_opencl.h
CLEANFILES += tests/opencl/fake_opencl.so

tests/opencl/fake_opencl.so: tests/opencl/fake_opencl.c tests/opencl/fake_opencl.h
	@$(MKDIR_P) tests/opencl
	$(AM_V_CC)$(CC) $(CPPFLAGS) $(CFLAGS) -shared -fPIC -fvisibility=hidden -pthread -I$(srcdir) -o $@ \
	  $(srcdir)/tests/opencl/fake_opencl.c
