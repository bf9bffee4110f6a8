# shellcheck shell=bash
# The rc file of a bash that `flightrec shell` starts: the person's own, and then flightrec, which may not
# be in it. At top level, not in a function: `declare` in somebody's .bashrc means a global.

if [[ -r ~/.bashrc ]]; then
  # shellcheck source=/dev/null
  . ~/.bashrc
fi
if [[ -n ${FLIGHTREC_LOAD-} ]]; then
  builtin eval "builtin unset FLIGHTREC_LOAD; $FLIGHTREC_LOAD"
fi
