{ for _flightrec_word in "${BASH_COMMAND-}" "${_-}"; do _flightrec_found+=("$_flightrec_word"); done
  _flightrec_last=${_flightrec_found[1]} _flightrec_flags=$-; builtin set +xv; } 2>/dev/null
# BASH_ENV of an agent's run: every bash that is no interactive one reads this before its commands.
#
# A shell that was started by its full path, past our stand-ins, is caught here: it becomes the helper,
# which runs the same shell with the same words and sees how it ends. Everything else is small work
# beside the person's own BASH_ENV, which is read as bash would have read it.
#
# Nothing here is allowed to say anything, to fail under `set -eu`, or to leave a name without the
# underscore that keeps it out of agents' snapshots. Builtins are called as such, since an exported
# function of the person's may have their name.

# Nothing after the first command shows under `set -xv`. The words of `for` are the one place where
# BASH_COMMAND and $_ are still what they were before this file.

# ---- named by an agent's settings, without `flightrec run` ----

# The helper finds agent and session by the agent's marks (shim/marks.c), and all else is as in a
# recorded run. The person's own variables are those that the agent was started with.
_flightrec_marked=
if [[ ${BASH_ENV-} == "${BASH_SOURCE[0]}" ]]; then
  if [[ -n ${FLIGHTREC_SESSION-} ]]; then
    FLIGHTREC_SCRIPTS=${BASH_ENV%/*} # settings come after what `flightrec run` has set
  else
    { builtin mapfile -d '' -t _flightrec_words <"/proc/$PPID/environ"; } 2>/dev/null || :
    for _flightrec_word in "${_flightrec_words[@]}"; do
      case $_flightrec_word in
        "BASH_ENV=$BASH_ENV" | "ZDOTDIR=${ZDOTDIR-}") ;;
        BASH_ENV=*) : "${FLIGHTREC_BASH_ENV=${_flightrec_word#*=}}" ;;
        ZDOTDIR=*) : "${FLIGHTREC_ZDOTDIR=${_flightrec_word#*=}}" ;;
      esac
    done
    if [[ ${AI_AGENT-} != *_harness &&
          ${CLAUDECODE-}${CODEX_THREAD_ID-}${OPENCODE-}${PI_CODING_AGENT-}${COPILOT_CLI-} ]]; then
      _flightrec_marked=1
      builtin export FLIGHTREC_SCRIPTS="${BASH_ENV%/*}"
      builtin export FLIGHTREC_HELPER="$FLIGHTREC_SCRIPTS/flightrec-helper"
      [[ -z ${FLIGHTREC_BASH_ENV-} ]] || builtin export FLIGHTREC_BASH_ENV
      [[ -z ${FLIGHTREC_ZDOTDIR-} ]] || builtin export FLIGHTREC_ZDOTDIR
    fi
  fi
fi

# ---- the outermost shell with a command line: go round through the helper ----

_flightrec_wanted=
if [[ -n ${FLIGHTREC_SESSION-}$_flightrec_marked && -z ${FLIGHTREC_INSIDE-}${FLIGHTREC_OFF-} &&
      ${FLIGHTREC_DOOR-} != "$$" && ${FLIGHTREC_DOOR-} != "$PPID" &&
      ${FLIGHTREC_ROOT-} != "$$" && -x ${FLIGHTREC_HELPER-} &&
      ( -z ${FLIGHTREC_SILENT-} || ! -e /proc/${FLIGHTREC_SILENT-} ) ]]; then
  _flightrec_wanted=1
fi

# Not a login shell: its profile has run by now, and would run a second time.
if [[ $_flightrec_wanted && -n ${BASH_EXECUTION_STRING-} ]] && ! builtin shopt -q login_shell; then
  # The kernel knows the words as they were given: options, $0 and positional parameters.
  { builtin mapfile -d '' -t _flightrec_words </proc/self/cmdline; } 2>/dev/null || :
  for _flightrec_word in "${_flightrec_words[@]}"; do
    if [[ $_flightrec_word == "$BASH_EXECUTION_STRING" ]]; then
      builtin shopt -s execfail
      builtin exec "$FLIGHTREC_HELPER" sh --last "_=$_flightrec_last" "$BASH" "${_flightrec_words[@]}"
      builtin shopt -u execfail # no memory, or a line at the system's limit: go on unseen
      break
    fi
  done
fi

# ---- a login shell with a command line: announce it, and report from the EXIT trap ----

if [[ $_flightrec_wanted && -n ${BASH_EXECUTION_STRING-} ]] && builtin shopt -q login_shell; then
  builtin printf -v FLIGHTREC_PARENT '%08x%08x%08x%08x' "$SRANDOM" "$SRANDOM" "$SRANDOM" "$SRANDOM"
  _flightrec_begin=${EPOCHREALTIME-} _flightrec_cwd=$PWD

  # A signal ends the shell in the middle of its text, with the status of an earlier command. Then
  # BASH_COMMAND is a command of that text; at its true end it is what it was before (the profile's
  # last command, or else this file's). And a job that is not in the background is still there.
  _flightrec_report() {
    builtin local status=$1 job
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
      builtin export FLIGHTREC_PARENT FLIGHTREC_INSIDE=1
      builtin trap \
        '{ _flightrec_report "$?" "$BASH_COMMAND" "${PIPESTATUS[@]}"; } 2>/dev/null' EXIT
      ;;
    3) builtin unset -v FLIGHTREC_PARENT ;; # an agent's own shell around the model's
    4) builtin unset -v FLIGHTREC_PARENT; builtin export FLIGHTREC_SILENT=$$ ;; # an agent's own work
    *) builtin export FLIGHTREC_OFF=1 ;;    # private
  esac
fi

# ---- a shell that reads its commands from standard input: report each one that fails ----

if [[ $_flightrec_wanted && -z ${BASH_EXECUTION_STRING+x} && ${0##*/} == bash ]]; then
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

# ---- a shell that the helper runs ----

if [[ -n ${FLIGHTREC_STATUS-} && ${FLIGHTREC_DOOR-} == "$PPID" ]]; then
  _flightrec_status=$FLIGHTREC_STATUS
  builtin trap \
    '{ builtin printf "%s " "$?" "${PIPESTATUS[@]}" >|"$_flightrec_status"; } 2>/dev/null' EXIT
fi
builtin unset -v FLIGHTREC_STATUS FLIGHTREC_DOOR FLIGHTREC_PROFILE

# Inside a recorded command no shell needs catching, nor in an agent's own work: the person's variables
# are as they were.
if [[ -n ${FLIGHTREC_INSIDE-} || -z ${FLIGHTREC_SESSION-}$_flightrec_marked ]]; then
  if [[ ${ZDOTDIR-} == "${BASH_SOURCE[0]%/*}/zdotdir" ]]; then
    ZDOTDIR=${FLIGHTREC_ZDOTDIR-}
    [[ ${FLIGHTREC_ZDOTDIR+x} ]] || builtin unset -v ZDOTDIR
  fi
  if [[ ${BASH_ENV-} == "${BASH_SOURCE[0]}" ]]; then
    BASH_ENV=${FLIGHTREC_BASH_ENV-}
    [[ $BASH_ENV ]] || builtin unset -v BASH_ENV
  fi
fi

# bash expands the variable's value, and looks for the file nowhere else.
if [[ -n ${FLIGHTREC_BASH_ENV-} ]]; then
  builtin eval "_flightrec_file=\"$FLIGHTREC_BASH_ENV\""
  [[ $_flightrec_file == */* ]] || _flightrec_file=./$_flightrec_file
  if [[ -e $_flightrec_file ]]; then
    # shellcheck source=/dev/null # the person's own
    builtin . "$_flightrec_file"
  fi
fi

# A profile may have set PATH anew (Debian's does) or put folders before ours.
if builtin shopt -q login_shell && [[ -d ${FLIGHTREC_SHIMS-} && :$PATH: != ":$FLIGHTREC_SHIMS:"* ]]; then
  _flightrec_path=:$PATH:
  _flightrec_path=${_flightrec_path//":$FLIGHTREC_SHIMS:"/:}
  _flightrec_path=${_flightrec_path#:}
  PATH=$FLIGHTREC_SHIMS:${_flightrec_path%:}
fi

# The last command names us in any case: _flightrec_report looks for that.
_flightrec_none=()
case $_flightrec_flags in
  *v*x* | *x*v*) builtin set -xv "${_flightrec_none[@]}" ;;
  *x*) builtin set -x "${_flightrec_none[@]}" ;;
  *v*) builtin set -v "${_flightrec_none[@]}" ;;
  *) : "$_flightrec_last" ;;
esac
