# AK_ISA(NAME, HOST-CPU-PATTERN, CFLAGS, PROGRAM)
# -----------------------------------------------
# A bundle of kernels for one instruction set, compiled with its own flags into
# libak_NAME.la and chosen at run time. It is built where the host CPU matches
# the shell pattern and the compiler takes CFLAGS and PROGRAM.
#
# Substitutes AK_<NAME>_CFLAGS and adds to AK_ISA_LIBS; config.h gets
# HAVE_AK_<NAME>, 0 or 1. Adds to the shell variables ak_isa_built and ak_isa_off, for
# the summary.
AC_DEFUN([AK_ISA], [_AK_ISA([$1], [$2], [$3], [$4], m4_toupper([$1]))])

AC_DEFUN([_AK_ISA], [
AC_REQUIRE([AC_CANONICAL_HOST])
ak_have_isa=0
case $host_cpu in
$2)
    AC_CACHE_CHECK([whether $CC builds the $1 kernels], [ak_cv_isa_$1], [
        ak_save_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS $3"
        AC_COMPILE_IFELSE([AC_LANG_SOURCE([$4])], [ak_cv_isa_$1=yes], [ak_cv_isa_$1=no])
        CFLAGS=$ak_save_CFLAGS
    ])
    if test "$ak_cv_isa_$1" = yes; then
        ak_have_isa=1
        AK_ISA_LIBS="$AK_ISA_LIBS libak_$1.la"
        ak_isa_built="$ak_isa_built $1"
    else
        ak_isa_off="$ak_isa_off $1"
    fi
    ;;
esac
AC_DEFINE_UNQUOTED([HAVE_AK_$5], [$ak_have_isa], [1 if the $1 kernels are built, else 0.])
AC_SUBST([AK_$5_CFLAGS], ["$3"])
])
