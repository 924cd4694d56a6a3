# Every operation and type on a device, against the CPU; without one it skips, or fails where
# AKUNU_REQUIRE_OPENCL is 1.
check_PROGRAMS += tests/test_opencl
tests_test_opencl_SOURCES = tests/test_opencl.c tests/table_rig.h tests/gguf_files.c tests/gguf_files.h
tests_test_opencl_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_opencl_LDADD = $(AK_TEST_LIBS)

# What the OpenCL backend's host code does with devices that fail: over a loader that is a
# module of the tests, so that no driver is needed.
if HAVE_OPENCL
check_PROGRAMS += tests/test_opencl_host
check_DATA += tests/fake_opencl.so
tests_test_opencl_host_SOURCES = tests/test_opencl_host.c tests/fake_opencl.h tests/golden_model.h
tests_test_opencl_host_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_opencl_host_CPPFLAGS = $(AM_CPPFLAGS) -DAK_FAKE_OPENCL='"$(abs_builddir)/tests/fake_opencl.so"'
tests_test_opencl_host_LDADD = $(AK_TEST_LIBS)
EXTRA_tests_test_opencl_host_DEPENDENCIES = tests/fake_opencl.so
endif
EXTRA_DIST += tests/test_opencl_host.c tests/fake_opencl.c tests/fake_opencl.h
CLEANFILES += tests/fake_opencl.so

# Never a convenience library, whatever libraries this build makes.
tests/fake_opencl.so: tests/fake_opencl.c tests/fake_opencl.h
	@$(MKDIR_P) tests
	$(AM_V_CC)$(CC) $(CPPFLAGS) $(CFLAGS) -shared -fPIC -fvisibility=hidden -pthread -I$(srcdir)/tests -o $@ $(srcdir)/tests/fake_opencl.c
