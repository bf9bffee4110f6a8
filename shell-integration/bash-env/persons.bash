# Read by bash-env.bash where there is a BASH_ENV of the person's, or in a login shell.

# bash expands the variable's value, and looks for the file nowhere else.
if [[ -n ${FLIGHTREC_BASH_ENV-} ]]; then
  builtin eval "_flightrec_file=\"$FLIGHTREC_BASH_ENV\""
  [[ $_flightrec_file == */* ]] || _flightrec_file=./$_flightrec_file
  if [[ -e $_flightrec_file ]]; then
    # shellcheck source=/dev/null # the person's own
    builtin . "$_flightrec_file"
  fi
  builtin unset -v _flightrec_file
fi

# A profile may have set PATH anew (Debian's does) or put folders before ours.
if builtin shopt -q login_shell && [[ -d ${FLIGHTREC_SHIMS-} && :$PATH: != ":$FLIGHTREC_SHIMS:"* ]]; then
  _flightrec_path=:$PATH:
  _flightrec_path=${_flightrec_path//":$FLIGHTREC_SHIMS:"/:}
  _flightrec_path=${_flightrec_path#:}
  PATH=$FLIGHTREC_SHIMS:${_flightrec_path%:}
  builtin unset -v _flightrec_path
fi
