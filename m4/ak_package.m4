# AK_PACKAGE(VARIABLE, PKG-CONFIG-MODULES, DEBIAN-PACKAGE)
# --------------------------------------------------------
# A library that akunu needs. Substitutes <VARIABLE>_CFLAGS and <VARIABLE>_LIBS.
# What is missing is collected, so that AK_PACKAGES_DONE can name all of it at
# once. Adds to ak_found for the summary.
AC_DEFUN([AK_PACKAGE], [
PKG_CHECK_MODULES([$1], [$2],
    [ak_found="$ak_found $3"],
    [ak_missing="$ak_missing $3"])
])

# AK_OFF(WHAT)
# ------------
# Adds a line to the summary: what this build cannot do, and how to get it.
AC_DEFUN([AK_OFF], [ak_off="$ak_off
  off:            $1"])

# AK_PACKAGE_OPTIONAL(VARIABLE, PKG-CONFIG-MODULES, DEBIAN-PACKAGE, WHAT FOR)
# ---------------------------------------------------------------------------
# The same for a library that akunu can do without. Sets ak_have_<VARIABLE> to
# yes or no, and a line of the summary says what is off without it.
AC_DEFUN([AK_PACKAGE_OPTIONAL], [
PKG_CHECK_MODULES([$1], [$2],
    [ak_have_$1=yes
    ak_found="$ak_found $3"],
    [ak_have_$1=no
    AK_OFF([$4 (apt-get install $3)])])
])

# AK_PACKAGES_DONE
# ----------------
# Stops with one message if a needed package is missing.
AC_DEFUN([AK_PACKAGES_DONE], [
if test -n "$ak_missing"; then
    AC_MSG_ERROR([libraries are missing. On Debian or Ubuntu:

    apt-get install$ak_missing
])
fi
])
