# ZDOTDIR of an agent's run: every zsh reads this first.
#
# A zsh that was started by its full path, past our stand-ins, is caught here: it becomes the helper,
# which runs the same zsh with the same words and sees how it ends. Otherwise the four files of this
# folder read the person's own, each with ZDOTDIR as the person has it, and then get out of the way.
# They are read at top level, not in a function: `typeset` in somebody's .zshrc means a global.
#
# Names begin with an underscore, so that agents leave them out of their snapshots.

{ _flightrec_flags=$-; builtin set +xv } 2>/dev/null

# ---- named by an agent's settings, without `flightrec run`: see bash-env.bash ----

_flightrec_marked=
if [[ -z ${FLIGHTREC_SESSION-} && ${AI_AGENT-} != *_harness &&
      -n ${CLAUDECODE-}${CODEX_THREAD_ID-}${OPENCODE-}${PI_CODING_AGENT-}${COPILOT_CLI-} ]]; then
  _flightrec_marked=1
  builtin export FLIGHTREC_SCRIPTS=${ZDOTDIR%/*} FLIGHTREC_HELPER=${ZDOTDIR%/*}/flightrec-helper
elif [[ -n ${FLIGHTREC_SESSION-} && -n ${ZDOTDIR-} ]]; then
  FLIGHTREC_SCRIPTS=${ZDOTDIR%/*} # settings come after what `flightrec run` has set
fi

# ---- the outermost shell with a command line: go round through the helper ----

# Not with -x or -v: /etc/zshenv was traced already and would be once more.
if [[ -n ${ZSH_EXECUTION_STRING-} && -n ${FLIGHTREC_SESSION-}$_flightrec_marked &&
      -z ${FLIGHTREC_INSIDE-}${FLIGHTREC_OFF-} && ${FLIGHTREC_DOOR-} != $$ &&
      ${FLIGHTREC_DOOR-} != $PPID && ${FLIGHTREC_ROOT-} != $$ && -x ${FLIGHTREC_HELPER-} &&
      ( -z ${FLIGHTREC_SILENT-} || ! -e /proc/${FLIGHTREC_SILENT-} ) &&
      $_flightrec_flags != *[xv]* ]]; then
  () {
    builtin emulate -L zsh
    builtin local text= chunk= shell=/proc/self/exe
    builtin local -a words
    # The kernel knows the words as they were given: options, $0 and positional parameters. `read`
    # takes a byte at a time; a long text is worth loading a module for.
    if (( ${#ZSH_EXECUTION_STRING} < 2000 )); then
      while IFS= builtin read -r -d $'\0' text; do words+=("$text"); done 2>/dev/null </proc/self/cmdline
    elif builtin zmodload -F zsh/system b:sysread 2>/dev/null; then
      { while builtin sysread chunk; do text+=$chunk; done } 2>/dev/null </proc/self/cmdline
      words=("${(@0)${text%$'\0'}}")
    fi
    if (( ${words[(Ie)$ZSH_EXECUTION_STRING]} )); then
      builtin exec "$FLIGHTREC_HELPER" sh "${shell:A}" "${words[@]}"
    fi
  }
fi

# ---- a shell that the helper runs ----

if [[ -n ${FLIGHTREC_STATUS-} && ${FLIGHTREC_DOOR-} == $PPID ]]; then
  _flightrec_status=$FLIGHTREC_STATUS
  builtin trap '{ builtin printf "%s " $? ${pipestatus[@]} >|$_flightrec_status } 2>/dev/null' EXIT
fi
builtin unset FLIGHTREC_STATUS FLIGHTREC_DOOR

# The person's own variables, where nobody has noted them: those that the agent was started with.
if [[ -z ${FLIGHTREC_SESSION-} ]]; then
  () {
    builtin emulate -L zsh
    builtin local text= chunk= entry=
    builtin zmodload -F zsh/system b:sysread 2>/dev/null || builtin return 0
    { while builtin sysread chunk; do text+=$chunk; done } 2>/dev/null </proc/$PPID/environ
    for entry in "${(@0)text}"; do
      case $entry in
        (BASH_ENV=${BASH_ENV-}|ZDOTDIR=${ZDOTDIR-}) ;;
        (BASH_ENV=?*) : ${FLIGHTREC_BASH_ENV=${entry#*=}} ;;
        (ZDOTDIR=*) : ${FLIGHTREC_ZDOTDIR=${entry#*=}} ;;
      esac
    done
  }
fi

# Inside a recorded command no shell needs catching, nor in an agent's own work: the person's variable
# is as it was.
if [[ ( -n ${FLIGHTREC_INSIDE-} || -z ${FLIGHTREC_SESSION-}$_flightrec_marked ) &&
      ${BASH_ENV-} == "${ZDOTDIR%/*}/bash-env.bash" ]]; then
  if [[ -n ${FLIGHTREC_BASH_ENV-} ]]; then
    BASH_ENV=$FLIGHTREC_BASH_ENV
  else
    builtin unset BASH_ENV
  fi
fi

# ---- the person's own files ----

# ZDOTDIR as the person has it, before one of the person's files is read.
_flightrec_theirs() {
  if (( ${+_flightrec_zdotdir} )); then
    builtin typeset -g ZDOTDIR=$_flightrec_zdotdir
    (( _flightrec_exported )) && builtin typeset -gx ZDOTDIR || builtin typeset -g +x ZDOTDIR
  else
    builtin unset ZDOTDIR
  fi
}

# The person's file has been read: remember its ZDOTDIR, and go on to our next file ($1), or finish.
_flightrec_next() {
  builtin emulate -L zsh
  if (( ${+ZDOTDIR} )); then
    builtin typeset -g _flightrec_zdotdir=$ZDOTDIR
    [[ ${(t)ZDOTDIR} == *export* ]]
    builtin typeset -g _flightrec_exported=$(( ! $? ))
  else
    builtin unset _flightrec_zdotdir
  fi
  case $1 in
    zprofile) [[ -o login ]] ;;
    zshrc) [[ -o interactive ]] ;;
    zlogin) [[ -o login ]] ;;
    *) builtin false ;;
  esac
  if (( ! $? )) && [[ -o rcs ]]; then
    builtin typeset -gx ZDOTDIR=$_flightrec_ours
    return
  fi
  case $1 in
    zprofile) _flightrec_next zshrc ;;
    zshrc) _flightrec_next zlogin ;;
    *) _flightrec_finish ;;
  esac
}

_flightrec_finish() {
  builtin emulate -L zsh
  # A profile may have set PATH anew or put folders before ours.
  if [[ ( -o login || -o interactive ) && -d ${FLIGHTREC_SHIMS-} && $path[1] != $FLIGHTREC_SHIMS ]]; then
    path=("$FLIGHTREC_SHIMS" "${(@)path:#$FLIGHTREC_SHIMS}")
  fi
  # Where no command is recorded yet, the shells below have to be caught; an interactive zsh keeps
  # its history and caches in ZDOTDIR, so it gets its own back in any case.
  if [[ -z ${FLIGHTREC_INSIDE-} && -n ${FLIGHTREC_SESSION-}$_flightrec_marked &&
        ! -o interactive ]]; then
    if (( ${+_flightrec_zdotdir} && _flightrec_exported )); then
      builtin typeset -gx FLIGHTREC_ZDOTDIR=$_flightrec_zdotdir
    fi
    builtin typeset -gx ZDOTDIR=$_flightrec_ours
  else
    _flightrec_theirs
  fi
  builtin unset FLIGHTREC_PROFILE _flightrec_marked
  builtin unset _flightrec_ours _flightrec_zdotdir _flightrec_exported
  builtin unfunction _flightrec_theirs _flightrec_next _flightrec_finish
}

_flightrec_ours=${ZDOTDIR-}
_flightrec_exported=1
if (( ${+FLIGHTREC_ZDOTDIR} )); then
  _flightrec_zdotdir=$FLIGHTREC_ZDOTDIR
fi

_flightrec_theirs
if [[ -r ${ZDOTDIR:-$HOME}/.zshenv ]]; then
  builtin source ${ZDOTDIR:-$HOME}/.zshenv
fi
_flightrec_next zprofile

{
  case $_flightrec_flags in
    (*v*x*|*x*v*) builtin unset _flightrec_flags; builtin set -xv ;;
    (*x*) builtin unset _flightrec_flags; builtin set -x ;;
    (*v*) builtin unset _flightrec_flags; builtin set -v ;;
    (*) builtin unset _flightrec_flags; : '' ;; # $_ is empty in a new zsh
  esac
} 2>/dev/null
