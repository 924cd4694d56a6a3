# AK_FOLDER(NAME, VARIABLE, FOLDER)
# ---------------------------------
# --with-NAME-dir=DIR, where something is installed. Substitutes AK_<VARIABLE>_DIR.
AC_DEFUN([AK_FOLDER], [
AC_ARG_WITH([$1-dir],
    [AS_HELP_STRING([--with-$1-dir=DIR], [where the $1 of akunu-cli goes @<:@$3@:>@])],
    [AS_CASE([$withval], [yes|no], [AC_MSG_ERROR([--with-$1-dir wants a folder])])
    AK_$2_DIR=$withval],
    [AK_$2_DIR='$3'])
AC_SUBST([AK_$2_DIR])
])
