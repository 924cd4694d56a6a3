# What the OpenCL backend's host code does with devices that fail: over a loader that is a
# module of the tests, so that no driver is needed.
if HAVE_OPENCL
check_PROGRAMS += tests/test_opencl
check_DATA += tests/fake_opencl.so
tests_test_opencl_SOURCES = tests/test_opencl.c tests/fake_opencl.h tests/golden_model.h
tests_test_opencl_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_opencl_CPPFLAGS = $(AM_CPPFLAGS) -DAK_FAKE_OPENCL='"$(abs_builddir)/tests/fake_opencl.so"'
tests_test_opencl_LDADD = $(AK_TEST_LIBS)
EXTRA_tests_test_opencl_DEPENDENCIES = tests/fake_opencl.so
endif
EXTRA_DIST += tests/test_opencl.c tests/fake_opencl.c tests/fake_opencl.h
CLEANFILES += tests/fake_opencl.so

# Never a convenience library, whatever libraries this build makes.
tests/fake_opencl.so: tests/fake_opencl.c tests/fake_opencl.h
	@$(MKDIR_P) tests
	$(AM_V_CC)$(CC) $(CPPFLAGS) $(CFLAGS) -shared -fPIC -fvisibility=hidden -pthread -I$(srcdir)/tests -o $@ $(srcdir)/tests/fake_opencl.c
