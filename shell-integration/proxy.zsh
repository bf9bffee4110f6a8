# For zsh, as the first line of the rc file: put this shell inside the proxy, which knows the tail of
# what commands write. README.md beside this file says when that is left alone, and why.
#
# The shell starts once more inside, so nothing of the rc file may stand before. Wherever anything is
# missing or strange, the shell goes on as it is.

# An interactive shell that is starting up, with no other options than a terminal gives it: not one that
# reads this file later, where `exec` would take away what the person has done so far. Whoever starts a
# shell with more options wants just that one. Sets fr_words, fr_program.
__flightrec_is_starting() {
  [[ -o interactive && $ZSH_EVAL_CONTEXT != *(toplevel|cmdarg)* && -r /proc/$$/cmdline ]] || return 1
  fr_words=("${(@ps:\0:)$(</proc/$$/cmdline)}")
  fr_words[-1]=() # nothing stands behind the last NUL
  fr_program=/proc/$$/exe
  fr_program=${fr_program:A}
  [[ -x $fr_program && -z ${fr_words[2,-1]:#(-i|-l|-il|-li|--login)} ]]
}

# In a session of the proxy's already, also in another terminal that was opened in one; or this very
# process was there.
__flightrec_was_entered() {
  builtin local -a fr_parts
  fr_parts=("${(@s.:.)FLIGHTREC_PTY-}")
  [[ $fr_parts[1] == $$ || /dev/fd/0 -ef $fr_parts[4] || -p ${(j.:.)fr_parts[5,-1]}/i ]]
}

# Terminals that keep track of their shell in ways of their own, and what is no terminal for people.
__flightrec_is_plain_terminal() {
  builtin local fr_parent=''
  [[ -t 0 && -t 1 && -t 2 ]] || return 1
  [[ -z "${TMUX-}${STY-}${ZELLIJ-}${INSIDE_EMACS-}${MC_SID-}${VSCODE_INJECTION-}" ]] || return 1
  [[ -z "${SSH_ORIGINAL_COMMAND-}" ]] || return 1
  case ${TERM-} in '' | dumb | linux | emacs* | eterm*) return 1 ;; esac
  case ${TERM_PROGRAM-} in vscode | WarpTerminal) return 1 ;; esac
  case ${TERMINAL_EMULATOR-} in JetBrains*) return 1 ;; esac
  builtin read -r fr_parent </proc/$PPID/comm
  case $fr_parent in mosh-server | mc | emacs* | script | screen | tmux* | zellij) return 1 ;; esac
}

# `[capture] tail = false` in the settings.
__flightrec_is_wanted() {
  builtin local fr_line fr_section='' fr_file=$HOME/.config/flightrec/config.toml
  [[ -r $fr_file ]] || return 0
  while builtin read -r fr_line || [[ -n $fr_line ]]; do
    fr_line=${fr_line//[[:space:]]/}
    case $fr_line in
      '['*) fr_section=${fr_line%%\#*} ;;
      tail=false*) [[ $fr_section != '[capture]' ]] || return 1 ;;
    esac
  done <$fr_file
}

# As the terminal gave them: what the start-up has done to the variables so far, it does once more.
__flightrec_restore_environment() {
  builtin zmodload zsh/parameter || return
  builtin local fr_entry fr_name
  builtin local -A fr_given
  for fr_entry in "${(@ps:\0:)$(</proc/$$/environ)}"; do
    fr_name=${fr_entry%%=*}
    # zsh itself counts SHLVL down as it executes another program, and USERNAME would change the user.
    [[ $fr_name == [A-Za-z_]* && $fr_name != (*[^A-Za-z0-9_]*|_|SHLVL|USERNAME) ]] || continue
    fr_given[$fr_name]=1
    [[ ${parameters[$fr_name]-} == *readonly* || ${(P)fr_name-} == ${fr_entry#*=} ]] ||
      builtin typeset -gx -- $fr_entry
  done
  for fr_name in ${(k)parameters[(R)*export*]}; do
    [[ -n ${fr_given[$fr_name]-} || $fr_name == (_|SHLVL|USERNAME) ]] || builtin typeset -g +x $fr_name
  done
}

__flightrec_enter_proxy() {
  builtin emulate -L zsh
  builtin setopt nomultibyte
  builtin local fr_program
  builtin local -a fr_words
  [[ -z "${FLIGHTREC_OFF-}${FLIGHTREC_NO_TAIL-}${FLIGHTREC_SESSION-}${SUDO_UID-}" ]] || return 0
  [[ -x ${__flightrec_helper-} ]] && __flightrec_is_starting && ! __flightrec_was_entered &&
    __flightrec_is_plain_terminal && __flightrec_is_wanted || return 0
  # Of another kind of machine, or without its libraries? zsh would end with the attempt.
  [[ $($__flightrec_helper --version 2>/dev/null) == flightrec-helper* ]] || return 0
  __flightrec_restore_environment 2>/dev/null
  builtin exec $__flightrec_helper pty $fr_program "${__flightrec_command-}" -- "${fr_words[@]}"
}

__flightrec_enter_proxy
builtin unfunction __flightrec_enter_proxy __flightrec_is_starting __flightrec_was_entered \
  __flightrec_is_plain_terminal __flightrec_is_wanted __flightrec_restore_environment
