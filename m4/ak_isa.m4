# AK_ISA(NAME, HOST-CPU-PATTERN, CFLAGS, PROGRAM)
# -----------------------------------------------
# The kernels of one instruction set, compiled with its own flags into
# libak_NAME.la and chosen at run time. It can be built where the host CPU matches
# the shell pattern and the compiler takes CFLAGS and PROGRAM.
#
# Substitutes AK_<NAME>_CFLAGS. AK_ISA_CHOOSE, after all calls, says which are built.
AC_DEFUN([AK_ISA], [_AK_ISA([$1], [$2], [$3], [$4], m4_toupper([$1]))])

m4_define([_AK_ISA_COMMAS], [m4_bpatsubst(m4_defn([_AK_ISA_NAMES]), [ ], [[, ]])])

AC_DEFUN([_AK_ISA], [
AC_REQUIRE([AC_CANONICAL_HOST])
m4_append([_AK_ISA_NAMES], [$1], [ ])dnl
ak_compiles=0
case $host_cpu in
$2)
    ak_isa_of_host="$ak_isa_of_host $1"
    AC_CACHE_CHECK([whether $CC builds the $1 kernels], [ak_cv_isa_$1], [
        ak_save_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS $3"
        AC_COMPILE_IFELSE([AC_LANG_SOURCE([$4])], [ak_cv_isa_$1=yes], [ak_cv_isa_$1=no])
        CFLAGS=$ak_save_CFLAGS
    ])
    AS_IF([test "$ak_cv_isa_$1" = yes], [ak_compiles=1 ak_isa_compiled="$ak_isa_compiled $1"])
    ;;
esac
ak_isa_defines="$ak_isa_defines
@%:@define HAVE_AK_$5 $ak_compiles"
AC_SUBST([AK_$5_CFLAGS], ["$3"])
])

# AK_ISA_CHOOSE
# -------------
# --enable-isa=LIST: which of the ISAs above are built, with the parents that
# src/engine/cpu/isa.def gives them. Substitutes AK_ISA_LIBS; config.h gets AK_ISA_BUILT
# and HAVE_AK_<NAME>, 0 or 1. Sets ak_have_<NAME> to the same number, and for the
# summary ak_isa_built, ak_isa_refused (by the compiler) and ak_isa_left_out.
AC_DEFUN([AK_ISA_CHOOSE], [
AC_ARG_ENABLE([isa],
    [AS_HELP_STRING([--enable-isa=LIST], [kernels to build: all, native (those that this machine can run), or names
        such as avx2,avxvnni; scalar ones are always built @<:@all@:>@])],
    [], [enable_isa=all])
AS_CASE([$enable_isa], [yes|no|''], 
    [AC_MSG_ERROR([--enable-isa wants all, native, or names with commas between them: scalar, _AK_ISA_COMMAS])])
ak_isa_chosen=
for ak_name in `echo "$enable_isa" | tr , ' '`; do
    AS_CASE([$ak_name],
        [all], [ak_isa_chosen="$ak_isa_chosen$ak_isa_compiled"],
        [native], [_AK_ISA_NATIVE
            ak_isa_chosen="$ak_isa_chosen $ak_isa_native"],
        [scalar], [],
        [AS_CASE([" _AK_ISA_NAMES "], [*" $ak_name "*], [],
            [AC_MSG_ERROR([--enable-isa=$enable_isa: there are no kernels called "$ak_name"; there are all, native, scalar, _AK_ISA_COMMAS])])
        AS_CASE(["$ak_isa_of_host "], [*" $ak_name "*], [],
            [AC_MSG_ERROR([--enable-isa=$enable_isa: $host_cpu has no $ak_name; it has scalar$ak_isa_of_host])])
        ak_isa_chosen="$ak_isa_chosen $ak_name"])
done

dnl A child, or optional instructions, and the ISA that they need, a pair per line.
ak_isa_parents=`sed -n 's/^ISA[[_OPTION]]*(\([[A-Z0-9_]]*\), [[a-z0-9_]]*, \([[A-Z0-9_]]*\),.*/\1 \2/p' "$srcdir/src/engine/cpu/isa.def" | tr A-Z a-z`
ak_isa_wanted=
for ak_name in $ak_isa_chosen; do
    while test -n "$ak_name" && test "$ak_name" != scalar; do
        AS_CASE(["$ak_isa_wanted "], [*" $ak_name "*], [break])
        AS_CASE(["$ak_isa_compiled "], [*" $ak_name "*], [],
            [AC_MSG_ERROR([--enable-isa=$enable_isa: $CC does not build the $ak_name kernels; a newer compiler does])])
        ak_isa_wanted="$ak_isa_wanted $ak_name"
        ak_name=`echo "$ak_isa_parents" | sed -n "s/^$ak_name //p" | sed 1q`
    done
done

AK_ISA_LIBS=
ak_isa_built=
ak_isa_refused=
ak_isa_left_out=
m4_map_args_w(m4_defn([_AK_ISA_NAMES]), [_AK_ISA_DEFINE(], [)])
AC_SUBST([AK_ISA_LIBS])
AC_DEFINE_UNQUOTED([AK_ISA_BUILT], ["scalar$ak_isa_built"], [Names of the ISAs that are built.])
])

# _AK_ISA_NATIVE
# --------------
# Sets ak_isa_native to the names of the ISAs that this machine can run, as
# src/engine/cpu/isa.c finds them when akunu runs.
AC_DEFUN([_AK_ISA_NATIVE], [
AS_IF([test "$cross_compiling" = yes],
    [AC_MSG_ERROR([--enable-isa=$enable_isa: "native" is what the machine that builds can run, and this build is for another one ($host); name the kernels, as in --enable-isa=avx2])])
AC_MSG_CHECKING([which kernels this machine can run])
ak_save_CPPFLAGS=$CPPFLAGS
CPPFLAGS="$CPPFLAGS -I$srcdir/src"
AC_LINK_IFELSE([AC_LANG_SOURCE([[$ak_isa_defines
#include "engine/cpu/isa.c"
#include <stdio.h>
int main(void)
{
    for (int i = 0; i < AK_CPU_ISA_COUNT; i++)
        if (i != AK_CPU_ISA_SCALAR && ak_cpu_isa_is_usable((enum ak_cpu_isa)i))
            printf("%s\n", ak_cpu_isa_name((enum ak_cpu_isa)i));
    for (int i = 0; i < AK_CPU_ISA_OPTION_COUNT; i++)
        if (ak_cpu_isa_option_is_usable((enum ak_cpu_isa_option)i))
            printf("%s\n", ak_cpu_isa_option_name((enum ak_cpu_isa_option)i));
    return 0;
}
]])],
    [ak_isa_native=`./conftest$EXEEXT` || AC_MSG_FAILURE([the program that finds them does not run])],
    [AC_MSG_FAILURE([the program that finds them does not compile])])
CPPFLAGS=$ak_save_CPPFLAGS
dnl Options that belong to an ISA, as amx_bf16, are built with it.
ak_names=
for ak_name in $ak_isa_native; do
    AS_CASE([" _AK_ISA_NAMES "], [*" $ak_name "*], [ak_names="$ak_names $ak_name"])
done
ak_isa_native=$ak_names
AC_MSG_RESULT([scalar$ak_isa_native])
])

# _AK_ISA_DEFINE(NAME)
AC_DEFUN([_AK_ISA_DEFINE], [
ak_have_$1=0
AS_CASE(["$ak_isa_wanted "], [*" $1 "*],
    [ak_have_$1=1
    AK_ISA_LIBS="$AK_ISA_LIBS libak_$1.la"
    ak_isa_built="$ak_isa_built $1"],
    [AS_CASE(["$ak_isa_compiled "], [*" $1 "*], [ak_isa_left_out="$ak_isa_left_out $1"],
        [AS_CASE(["$ak_isa_of_host "], [*" $1 "*], [ak_isa_refused="$ak_isa_refused $1"])])])
AC_DEFINE_UNQUOTED([HAVE_AK_]m4_toupper([$1]), [$ak_have_$1], [1 if the $1 kernels are built, else 0.])
])
