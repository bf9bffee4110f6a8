# shellcheck shell=bash
# For bash and zsh, as the first line of the rc file: put this shell inside the proxy, which knows the
# tail of what commands write. README.md beside this file says when that is left alone.
#
# The shell starts once more inside, with its own arguments, so nothing of the rc file may stand before.
# Wherever anything is missing or strange, the shell goes on as it is.

# Sets __flightrec_arguments to this process's arguments without starting another one.
__flightrec_find_arguments() {
  [[ -r /proc/$$/cmdline ]] || builtin return 1
  if [[ -n ${ZSH_VERSION-} ]]; then
    builtin eval '__flightrec_arguments=("${(@0)$(</proc/$$/cmdline)}")
      shift __flightrec_arguments'
  else
    builtin mapfile -d '' -t __flightrec_arguments </proc/$$/cmdline
    __flightrec_arguments=("${__flightrec_arguments[@]:1}")
  fi
}

# An interactive shell that is starting up: not one that reads this file later, where `exec` would take
# away what the person has done so far. bash adds `s` to $- only when it begins to read commands.
__flightrec_is_starting() {
  [[ $- == *i* ]] || builtin return 1
  if [[ -n ${ZSH_VERSION-} ]]; then
    [[ ${ZSH_EVAL_CONTEXT-} != *toplevel* ]]
  else
    [[ $- != *[sc]* ]]
  fi
}

# Terminals that keep track of their shell in ways of their own, and what is no terminal for people.
__flightrec_is_plain_terminal() {
  builtin local parent=''
  [[ -t 0 && -t 1 && -t 2 ]] || builtin return 1
  case ${TERM-} in '' | dumb | emacs* | eterm* | screen* | tmux*) builtin return 1 ;; esac
  case ${TERM_PROGRAM-} in vscode | WarpTerminal) builtin return 1 ;; esac
  [[ -z "${TMUX-}${STY-}${ZELLIJ-}${INSIDE_EMACS-}${MC_SID-}${VSCODE_INJECTION-}" ]] || builtin return 1
  [[ ${TERMINAL_EMULATOR-} != JetBrains* && -z ${SSH_ORIGINAL_COMMAND-} ]] || builtin return 1
  builtin read -r parent 2>/dev/null <"/proc/$PPID/comm"
  case $parent in mosh-server | mc | emacs* | script | screen | tmux*) builtin return 1 ;; esac
}

__flightrec_is_login() {
  if [[ -n ${ZSH_VERSION-} ]]; then [[ -o login ]]; else builtin shopt -q login_shell; fi
}

__flightrec_enter_proxy() {
  [[ -z "${FLIGHTREC_PTY_SHELL-}${FLIGHTREC_OFF-}${FLIGHTREC_NO_TAIL-}${SUDO_UID-}" ]] || builtin return 0
  [[ -n ${__flightrec_helper-} && -f $__flightrec_helper && -x $__flightrec_helper ]] || builtin return 0
  __flightrec_is_starting && __flightrec_is_plain_terminal || builtin return 0
  builtin local shell=bash program=${BASH-} login=''
  builtin local -a __flightrec_arguments
  if [[ -n ${ZSH_VERSION-} ]]; then
    shell=zsh
    builtin eval 'program=/proc/$$/exe; program=${program:A}'
  fi
  __flightrec_find_arguments && [[ -x $program ]] || builtin return 0
  # A login shell that is one by its name only, `-bash`, gets that name again.
  if [[ -z ${__flightrec_arguments[*]-} ]] && __flightrec_is_login; then login=-l; fi
  # `--rcfile F`, `-c`, a script: whoever starts a shell like that wants this one.
  case ${__flightrec_arguments[*]-} in '' | -i | -l | --login | -il | -li) ;; *) builtin return 0 ;; esac
  builtin exec "$__flightrec_helper" pty "$shell" "${__flightrec_command-}" ${login:+"$login"} -- "$program" \
    "${__flightrec_arguments[@]}"
}

__flightrec_enter_proxy
builtin unset -f __flightrec_enter_proxy __flightrec_find_arguments __flightrec_is_starting \
  __flightrec_is_plain_terminal __flightrec_is_login
