# shellcheck shell=bash
# For bash, as the first line of the rc file: put this shell inside the proxy, which knows the tail of
# what commands write. README.md beside this file says when that is left alone, and why.
#
# The shell starts once more inside, so nothing of the rc file may stand before. Wherever anything is
# missing or strange, the shell goes on as it is.

# An interactive shell that is starting up, with no other options than a terminal gives it: not one that
# reads this file later, where `exec` would take away what the person has done so far. (bash adds `s` to
# $- when it begins to read commands.) Whoever starts a shell with more options wants just that one.
__flightrec_is_starting() {
  [[ $- == *i* && $- != *[sc]* && -r /proc/$$/cmdline ]] || builtin return 1
  builtin mapfile -d '' -t __flightrec_words <"/proc/$$/cmdline"
  [[ " ${__flightrec_words[*]:1} " == *( |-i|-l|-il|-li|--login) ]]
}

# In a session of the proxy's already, also in another terminal that was opened in one; or this very
# process was there.
__flightrec_was_entered() {
  builtin local fr_shell fr_terminal fr_folder
  IFS=: builtin read -r fr_shell _ _ fr_terminal fr_folder <<<"${FLIGHTREC_PTY-}"
  [[ $fr_shell == "$$" || /dev/fd/0 -ef $fr_terminal || -p $fr_folder/i ]]
}

# Terminals that keep track of their shell in ways of their own, and what is no terminal for people.
__flightrec_is_plain_terminal() {
  builtin local fr_parent=''
  [[ -t 0 && -t 1 && -t 2 ]] || builtin return 1
  [[ -z "${TMUX-}${STY-}${ZELLIJ-}${INSIDE_EMACS-}${MC_SID-}${VSCODE_INJECTION-}" ]] || builtin return 1
  [[ -z "${SSH_ORIGINAL_COMMAND-}" ]] || builtin return 1
  case ${TERM-} in '' | dumb | linux | emacs* | eterm*) builtin return 1 ;; esac
  case ${TERM_PROGRAM-} in vscode | WarpTerminal) builtin return 1 ;; esac
  case ${TERMINAL_EMULATOR-} in JetBrains*) builtin return 1 ;; esac
  builtin read -r fr_parent <"/proc/$PPID/comm"
  case $fr_parent in mosh-server | mc | emacs* | script | screen | tmux* | zellij) builtin return 1 ;; esac
}

# `[capture] tail = false` in the settings.
__flightrec_is_wanted() {
  builtin local fr_line fr_section='' fr_file=$HOME/.config/flightrec/config.toml
  [[ -r $fr_file ]] || builtin return 0
  while builtin read -r fr_line || [[ -n $fr_line ]]; do
    fr_line=${fr_line//[[:space:]]/}
    case $fr_line in
      '['*) fr_section=${fr_line%%#*} ;;
      tail=false*) [[ $fr_section != '[capture]' ]] || builtin return 1 ;;
    esac
  done <"$fr_file"
}

# As the terminal gave them: what the start-up has done to the variables so far, it does once more.
__flightrec_restore_environment() {
  builtin local __flightrec_entry __flightrec_name
  builtin local -a __flightrec_entries __flightrec_names
  builtin local -A __flightrec_given
  builtin mapfile -d '' -t __flightrec_entries <"/proc/$$/environ"
  for __flightrec_entry in "${__flightrec_entries[@]}"; do
    __flightrec_name=${__flightrec_entry%%=*}
    __flightrec_given[_$__flightrec_name]=1
    # bash itself counts SHLVL down as it executes another program.
    [[ $__flightrec_name == [A-Za-z_]*([A-Za-z0-9_]) && $__flightrec_name != @(_|SHLVL) ]] || builtin continue
    [[ ${!__flightrec_name-} == "${__flightrec_entry#*=}" ]] || builtin export "${__flightrec_entry?}"
  done
  for __flightrec_name in {A..Z} {a..z} _; do
    builtin eval "__flightrec_names+=(\"\${!$__flightrec_name@}\")"
  done
  for __flightrec_name in "${__flightrec_names[@]}"; do
    [[ -n ${__flightrec_given[_$__flightrec_name]-} ]] || builtin export -n "${__flightrec_name?}"
  done
}

__flightrec_enter_proxy() {
  builtin local -a __flightrec_words
  [[ -z "${FLIGHTREC_OFF-}${FLIGHTREC_NO_TAIL-}${FLIGHTREC_SESSION-}${SUDO_UID-}" ]] || builtin return 0
  [[ -x ${__flightrec_helper-} && -x ${BASH-} ]] && __flightrec_is_starting && ! __flightrec_was_entered &&
    __flightrec_is_plain_terminal && __flightrec_is_wanted || builtin return 0
  # Of another kind of machine, or without its libraries? Better known while there is a way back.
  [[ $("$__flightrec_helper" --version 2>/dev/null) == flightrec-helper* ]] || builtin return 0
  __flightrec_restore_environment 2>/dev/null
  builtin shopt -s execfail
  builtin exec "$__flightrec_helper" pty "$BASH" "${__flightrec_command-}" -- "${__flightrec_words[@]}"
  builtin shopt -u execfail
}

__flightrec_enter_proxy
builtin unset -f __flightrec_enter_proxy __flightrec_is_starting __flightrec_was_entered \
  __flightrec_is_plain_terminal __flightrec_is_wanted __flightrec_restore_environment
