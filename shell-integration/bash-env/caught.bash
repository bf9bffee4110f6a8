# Read by bash-env.bash in a shell that could not be split in two: a bash that loads no builtins, or one
# that reads its commands from standard input.
# shellcheck disable=SC2034,SC2154 # used elsewhere, and set there

# Not a login shell: its profile has run by now, and would run a second time.
if [[ -n ${BASH_EXECUTION_STRING-} ]] && ! builtin shopt -q login_shell; then
  # The kernel knows the words as they were given: options, $0 and positional parameters.
  { builtin mapfile -d '' -t _flightrec_words </proc/self/cmdline; } 2>/dev/null || builtin :
  for _flightrec_word in "${_flightrec_words[@]}"; do
    if [[ $_flightrec_word == "$BASH_EXECUTION_STRING" ]]; then
      builtin shopt -s execfail
      builtin exec "$FLIGHTREC_HELPER" sh --last "_=${_flightrec_found[1]}" "$BASH" "${_flightrec_words[@]}"
      builtin shopt -u execfail # no memory, or a line at the system's limit: go on unseen
      break
    fi
  done
fi

# ---- a login shell with a command line: announce it, and report from the EXIT trap ----

# Where its profile has set one, that is the person's.
if [[ -n ${BASH_EXECUTION_STRING-} ]] && builtin shopt -q login_shell &&
  [[ -z $(builtin trap -p EXIT) ]]; then
  builtin printf -v FLIGHTREC_PARENT '%08x%08x%08x%08x' "$SRANDOM" "$SRANDOM" "$SRANDOM" "$SRANDOM"
  _flightrec_begin=${EPOCHREALTIME-} _flightrec_cwd=$PWD

  # A signal ends the shell in the middle of its text, with the status of an earlier command. Then
  # BASH_COMMAND is a command of that text; at its true end it is what it was before (the profile's
  # last command, or else this file's). And a job that is not in the background is still there.
  _flightrec_report() {
    builtin local status job
    status=$1
    builtin trap '' HUP INT TERM # whoever ends a group may do so twice, and the report is not done
    if [[ $2 != "${_flightrec_found[0]}" && $2 != *_flightrec* ]]; then
      status=unknown
    fi
    while builtin read -r job; do
      [[ $job == *'&' ]] || status=unknown
    done < <(builtin jobs -r)
    "$FLIGHTREC_HELPER" report --run "$FLIGHTREC_PARENT" --shell bash --cwd "$_flightrec_cwd" \
      --begin "$_flightrec_begin" --exit "$status" --pipestatus "${*:3}" \
      -- "$BASH_EXECUTION_STRING" </dev/null >/dev/null
  }
  "$FLIGHTREC_HELPER" report --run "$FLIGHTREC_PARENT" --shell bash -- "$BASH_EXECUTION_STRING" \
    </dev/null >/dev/null && _flightrec_answer=0 || _flightrec_answer=$?
  case $_flightrec_answer in
    0)
      FLIGHTREC_INSIDE=1
      builtin export FLIGHTREC_PARENT FLIGHTREC_INSIDE
      builtin trap \
        '{ _flightrec_report "$?" "$BASH_COMMAND" "${PIPESTATUS[@]}"; } 2>/dev/null' EXIT
      ;;
    3) builtin unset -v FLIGHTREC_PARENT ;; # an agent's own shell around the model's
    4) builtin unset -v FLIGHTREC_PARENT; FLIGHTREC_SILENT=$$; builtin export FLIGHTREC_SILENT ;; # an agent's own work
    *) FLIGHTREC_OFF=1; builtin export FLIGHTREC_OFF ;; # private
  esac
fi

# ---- a shell that reads its commands from standard input: report each one that fails ----

if [[ -z ${BASH_EXECUTION_STRING+x} && ${0##*/} == bash ]]; then
  # What has a stand-in was reported by it.
  _flightrec_failed() {
    builtin local words word
    builtin read -r -a words <<<"$2"
    for word in "${words[@]}"; do
      [[ $word == *=* ]] || break
    done
    if [[ :$PATH: != *":${FLIGHTREC_SHIMS-}:"* || ! -e ${FLIGHTREC_SHIMS-}/${word:-/} ]]; then
      "$FLIGHTREC_HELPER" report --shell bash --exit "$1" --pipestatus "${*:3}" -- "$2" \
        </dev/null >/dev/null
    fi
  }
  builtin trap '{ _flightrec_failed "$?" "$BASH_COMMAND" "${PIPESTATUS[@]}"; } 2>/dev/null' ERR
fi
