# Read by bash-env.bash under `set -x` or `set -v`, as its last command. It names us: _flightrec_report
# (caught.bash) looks for that.
# shellcheck disable=SC2154 # set in bash-env.bash

_flightrec_none=()
case $_flightrec_flags in
  *v*x* | *x*v*) builtin set -xv "${_flightrec_none[@]}" ;;
  *x*) builtin set -x "${_flightrec_none[@]}" ;;
  *) builtin set -v "${_flightrec_none[@]}" ;;
esac
