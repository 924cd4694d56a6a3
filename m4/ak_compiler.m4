# AK_TRY_CFLAG(VARIABLE, FLAG, [IF-REFUSED])
# ------------------------------------------
# Adds FLAG to VARIABLE if the compiler takes it.
AC_DEFUN([AK_TRY_CFLAG], [
AS_VAR_PUSHDEF([cache], [ak_cv_cflag_$2])
AC_CACHE_CHECK([whether $CC takes $2], [cache], [
    ak_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -Werror $2"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [AS_VAR_SET([cache], [yes])], [AS_VAR_SET([cache], [no])])
    CFLAGS=$ak_save_CFLAGS
])
AS_VAR_IF([cache], [yes], [$1="$$1 $2"], [$3])
AS_VAR_POPDEF([cache])
])

# AK_NO_FAST_MATH
# ---------------
# The same logits on every machine need float arithmetic as it is written.
AC_DEFUN([AK_NO_FAST_MATH], [
AC_MSG_CHECKING([that float arithmetic is left as it is written])
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#if defined(__FAST_MATH__) || defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error reordered
#endif
]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
    AC_MSG_ERROR([akunu gives the same bits everywhere, which -ffast-math and -Ofast break: leave them out of CFLAGS ("$CFLAGS")])])
])
