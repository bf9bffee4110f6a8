{ for _flightrec_word in "${BASH_COMMAND-}" "${_-}"; do _flightrec_found+=("$_flightrec_word"); done
  _flightrec_flags=$-; builtin set +xv; } 2>/dev/null
# Why all this: shim/README.md, since bash reads comments as slowly as code.
_flightrec_marked='' _flightrec_answer=''
if [[ ${FLIGHTREC_SESSION-} ]]; then
  FLIGHTREC_SCRIPTS=${BASH_SOURCE[0]%/*}
elif [[ ${BASH_ENV-} == "${BASH_SOURCE[0]}" ]]; then
  builtin . "${BASH_ENV%/*}/bash-env/marked.bash"
fi
if [[ ${FLIGHTREC_SESSION-}$_flightrec_marked && -z ${FLIGHTREC_INSIDE-}${FLIGHTREC_OFF-} &&
      ${FLIGHTREC_DOOR-} != "$$" && ${FLIGHTREC_DOOR-} != "$PPID" &&
      ${FLIGHTREC_ROOT-} != "$$" && -x ${FLIGHTREC_HELPER-} &&
      ( -z ${FLIGHTREC_SILENT-} || ! -e /proc/${FLIGHTREC_SILENT-} ) ]]; then
  _flightrec_answer=1
  if [[ ${BASH_EXECUTION_STRING-} && -z ${!-} ]] &&
    builtin enable -f "${FLIGHTREC_HELPER%/*}/flightrec-bash.so" _flightrec_door 2>/dev/null; then
    builtin _flightrec_door "$FLIGHTREC_HELPER" "$BASH_EXECUTION_STRING" &&
      _flightrec_answer=0 || _flightrec_answer=$?
    builtin enable -d _flightrec_door
  fi
  # shellcheck disable=SC2034 # for programs
  case $_flightrec_answer in
    0) builtin export FLIGHTREC_SESSION FLIGHTREC_PARENT FLIGHTREC_INSIDE FLIGHTREC_DEPTH FLIGHTREC_PARTS ;;
    [36]) ;;
    4) FLIGHTREC_SILENT=$$; builtin export FLIGHTREC_SILENT ;;
    5) FLIGHTREC_OFF=1; builtin export FLIGHTREC_OFF ;;
    *) builtin . "$FLIGHTREC_SCRIPTS/bash-env/caught.bash" ;;
  esac
fi
if [[ ${FLIGHTREC_STATUS-} && ( $_flightrec_answer == 0 || ${FLIGHTREC_DOOR-} == "$PPID" ) ]]; then
  builtin . "${BASH_SOURCE[0]%/*}/bash-env/pipeline.bash"
fi
builtin unset -v FLIGHTREC_STATUS FLIGHTREC_DOOR FLIGHTREC_PROFILE
if [[ ${FLIGHTREC_INSIDE-}${FLIGHTREC_OFF-} || -z ${FLIGHTREC_SESSION-}$_flightrec_marked ]]; then
  if [[ ${ZDOTDIR-} == "${BASH_SOURCE[0]%/*}/zdotdir" ]]; then
    ZDOTDIR=${FLIGHTREC_ZDOTDIR-}
    [[ ${FLIGHTREC_ZDOTDIR+x} ]] || builtin unset -v ZDOTDIR
  fi
  if [[ ${BASH_ENV-} == "${BASH_SOURCE[0]}" ]]; then
    BASH_ENV=${FLIGHTREC_BASH_ENV-}
    [[ $BASH_ENV ]] || builtin unset -v BASH_ENV
  fi
fi
if [[ ${FLIGHTREC_BASH_ENV-} ]] || builtin shopt -q login_shell; then
  builtin . "${BASH_SOURCE[0]%/*}/bash-env/persons.bash"
fi
[[ $_flightrec_answer == 1 ]] || builtin unset -v _flightrec_word _flightrec_marked _flightrec_answer
case $_flightrec_flags in
  *[xv]*) builtin . "${BASH_SOURCE[0]%/*}/bash-env/shown.bash" ;;
  *) builtin : "${_flightrec_found[1]}" ;;
esac
