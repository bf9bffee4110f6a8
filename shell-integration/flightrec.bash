# shellcheck shell=bash
# shellcheck disable=SC2154 # the relay's two assignments: __flightrec_in, __flightrec_out
# flightrec for interactive bash 5.1 and later.
#
# A guest: no process is started per command, no descriptor, option, trap, history or prompt of the
# person's is changed for longer than one of our own lines. README.md beside this file says why each
# trick is there. Everything fails open: where anything is missing, the shell is as without us.
#
# Every guard stands in a function: a `return` at top level would end the rc file that evals this text.

__flightrec_start() {
  # Once per process: under `set -a` our variables reach the shells that this one starts.
  [[ $- == *i* && ${__flightrec_shell-} != "$$" ]] || builtin return 0
  [[ -z ${FLIGHTREC_OFF-} && -z ${SUDO_UID-} ]] || builtin return 0
  __flightrec_shell=$$ __flightrec_relay=''
  if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < ${__flightrec_least_bash:-501})); then
    builtin printf 'flightrec: bash %s is too old to be recorded (5.1 is needed)\n' "$BASH_VERSION" >&2
    builtin return 0
  fi
  __flightrec_find_helper || builtin return 0
  if ! __flightrec_is_inside; then
    builtin eval "$("$__flightrec_helper" relay bash "$$" "${__flightrec_command-}" 2>/dev/null)"
  fi
  [[ -n ${__flightrec_relay-} ]] || builtin return 0
  __flightrec_set_up
  __flightrec_install
}

# Inside the proxy, whose worker does the relay's work. Its variable reaches whatever this shell starts,
# so it holds for one process on one terminal.
__flightrec_is_inside() {
  builtin local fr_shell fr_worker fr_nonce fr_terminal fr_folder
  __flightrec_mark=''
  IFS=: builtin read -r fr_shell fr_worker fr_nonce fr_terminal fr_folder <<<"${FLIGHTREC_PTY-}"
  [[ $fr_shell == "$$" && /dev/fd/0 -ef $fr_terminal ]] || builtin return 1
  [[ -p $fr_folder/i && -p $fr_folder/o ]] || builtin return 1
  __flightrec_in=$fr_folder/i __flightrec_out=$fr_folder/o __flightrec_relay=$fr_worker
  __flightrec_mark=$'\e]6973;'$fr_nonce';'
}

# Where `flightrec init` did not say it: beside this file, as in the package, or in the source tree.
__flightrec_find_helper() {
  builtin local fr_candidate "fr_here=${BASH_SOURCE[0]%/*}"
  for fr_candidate in "${__flightrec_helper-}" \
    "$fr_here/flightrec-helper" "$fr_here/../shim/build/flightrec-helper"; do
    if [[ $fr_candidate == /* || $fr_candidate == */* ]] && [[ -f $fr_candidate && -x $fr_candidate ]]; then
      __flightrec_helper=$fr_candidate
      builtin return 0
    fi
  done
  builtin return 1
}

# shellcheck disable=SC2016 # the strings are expanded by PS0, the trap and PROMPT_COMMAND
__flightrec_set_up() {
  __flightrec_alive=/proc/$__flightrec_relay/fd/0 # gone with the relay, also while it is a zombie
  __flightrec_state=idle                          # idle, run, repeat:PID, skip
  __flightrec_seq=0
  __flightrec_armed=0    # lines accepted since the last prompt or preexec, counted by PS0
  __flightrec_began=1    # when the last of them was, in microseconds
  __flightrec_missed=''  # set: the relay did not answer in time, and when it was asked last
  __flightrec_writing='' # set: in the midst of a record, or interrupted there
  __flightrec_entry=''   # HISTCMD at the last prompt: the number that the next line will get
  __flightrec_told=''    # set: the relay knows history's last entry
  __flightrec_is_set=''  # set: our trap is there and was not sprung
  __flightrec_then=-     # what the trap is to be while a command runs: the person's own, or none
  __flightrec_letters=abcdefghij __flightrec_capitals=ABCDEFGHIJ __flightrec_holds=KLMNOPQRST
  __flightrec_hold_s=30 # how long a held line waits for a key
  __flightrec_cooperates='' __flightrec_last_arg=''
  __flightrec_path='' __flightrec_venv='' __flightrec_conda=''
  __flightrec_ps0=('')
  __flightrec_patience=0.025 # seconds; the relay itself waits 20 ms for the daemon
  case ${FLIGHTREC_PATIENCE_MS-} in
    '' | *[!0-9]* | 0* | ?????*) ;;
    *)
      builtin printf -v __flightrec_patience '%d.%03d' \
        $(((FLIGHTREC_PATIENCE_MS + 5) / 1000)) $(((FLIGHTREC_PATIENCE_MS + 5) % 1000))
      ;;
  esac
  # The subscript is arithmetic: it sets variables in this very shell and prints nothing.
  __flightrec_arm='${__flightrec_ps0[__flightrec_armed+=1,__flightrec_began=${EPOCHREALTIME/[.,]},0]}'
  # Inside the proxy: where the command's output begins.
  [[ -z $__flightrec_mark ]] || __flightrec_arm+=$__flightrec_mark$'C\a'
  # Takes itself away before the command runs: what stayed would be paid for by every turn of a loop.
  # Its status is 0: under extdebug another one would keep the command from running.
  __flightrec_debug='if [[ $__flightrec_armed -gt 0 && $BASH_COMMAND != *__flightrec_* && $BASH_SUBSHELL == 0 ]]; then
  __flightrec_last_arg=$_ __flightrec_is_set=
  if [[ -p $__flightrec_in && -p $__flightrec_out && -e $__flightrec_alive ]]; then
    { __flightrec_starting || :; } 2>/dev/null 1<>"$__flightrec_in" <>"$__flightrec_out" || :
  else __flightrec_skip; fi
  trap -- "$__flightrec_then" DEBUG
  : "$__flightrec_last_arg"
fi'
  __flightrec_trap=$__flightrec_debug
  __flightrec_first='{ __flightrec_at_first "$?" "${PIPESTATUS[@]}" || :; } 2>/dev/null'
  # `case` leaves $? and PIPESTATUS as they are. `trap -p` shows the person's trap only here: inside a
  # function there is none.
  __flightrec_last='{ case $__flightrec_state$__flightrec_armed in idle0) ;;
    *) __flightrec_finished "$?" "${PIPESTATUS[@]}" || : ;; esac
  [[ $__flightrec_is_set ]] || trap -p DEBUG
  __flightrec_prepare && trap -- "$__flightrec_trap" DEBUG || :
} 2>/dev/null 1<>"$__flightrec_out" <&1 || :'
}

__flightrec_install() {
  if [[ -n ${bash_preexec_imported-}${__bp_imported-} ]]; then
    __flightrec_cooperate
  else
    __flightrec_keep_prompt_command
  fi
  __flightrec_keep_ps0
}

# Two elements of PROMPT_COMMAND: one before all others, so that their time is not the command's and
# our trap is not sprung by them, and one that survives `PROMPT_COMMAND=...`. bash gives each element
# the true $? and PIPESTATUS. (`printf -v` fails where the variable is readonly; an assignment would
# end whatever is being run.)
__flightrec_keep_prompt_command() {
  builtin local fr_element fr_others
  fr_others=()
  if [[ ${PROMPT_COMMAND[0]-} != "$__flightrec_first"* ]]; then
    for fr_element in "${PROMPT_COMMAND[@]}"; do
      [[ $fr_element == "$__flightrec_first" || $fr_element == "$__flightrec_last" ]] || fr_others+=("$fr_element")
    done
    builtin printf -v 'PROMPT_COMMAND[0]' '%s' "$__flightrec_first" || builtin return 0
    PROMPT_COMMAND=("$__flightrec_first" "${fr_others[@]}")
  fi
  builtin printf -v 'PROMPT_COMMAND[99]' '%s' "$__flightrec_last" || builtin return 0
}

__flightrec_keep_ps0() {
  if [[ $BASHOPTS != *promptvars* ]]; then
    builtin printf -v PS0 '%s' "${PS0//"$__flightrec_arm"/}" || : # it would be printed as it stands
  elif [[ ${PS0-} != *"$__flightrec_arm"* ]]; then
    builtin printf -v PS0 '%s' "${PS0-}$__flightrec_arm" || :
  fi
}

# bash-preexec owns the DEBUG trap and PROMPT_COMMAND of its shells: be two of its functions.
__flightrec_cooperate() {
  builtin local fr_i
  __flightrec_cooperates=1
  preexec_functions+=(__flightrec_preexec)
  precmd_functions=(__flightrec_precmd "${precmd_functions[@]}")
  for fr_i in "${!PROMPT_COMMAND[@]}"; do
    case ${PROMPT_COMMAND[fr_i]} in
      "$__flightrec_first" | "$__flightrec_last") builtin unset "PROMPT_COMMAND[$fr_i]" ;;
    esac
  done
}

__flightrec_preexec() {
  ((__flightrec_armed > 0)) || builtin return 0
  if [[ -p $__flightrec_in && -p $__flightrec_out && -e $__flightrec_alive ]]; then
    { __flightrec_starting || :; } 2>/dev/null 1<>"$__flightrec_in" <>"$__flightrec_out" || :
  else
    __flightrec_skip
  fi
}

__flightrec_precmd() {
  {
    __flightrec_finished "$?" "${BP_PIPESTATUS[@]-}"
    __flightrec_prepare
  } 2>/dev/null </dev/null || :
}

__flightrec_skip() {
  __flightrec_state=skip
  __flightrec_armed=0
}

# Before a command. Standard output is the relay's FIFO, standard input the one from it. One long
# function: each call of another one costs as much as two system calls.
__flightrec_starting() {
  builtin local fr_flag='=' fr_reply "fr_first=${BASH_COMMAND:0:4096}"
  # Whether history grew by this line. Otherwise its last entry is an older line.
  if ((${HISTCMD:-0} == __flightrec_entry + __flightrec_armed - 1)); then fr_flag='+'; fi
  # The number tells nothing where an older entry may go as a new one comes.
  if [[ -z ${HISTCMD-} || ${HISTCONTROL-} == *erasedups* ]]; then fr_flag='?'; fi
  __flightrec_state=skip __flightrec_armed=0
  [[ -o history && -z ${FLIGHTREC_OFF-} ]] || builtin return 0
  if [[ -n $__flightrec_missed$__flightrec_writing ]]; then
    __flightrec_is_back || builtin return 0
  fi
  # A FIFO takes 64 KiB: a longer line blocks if nobody reads it. Is somebody there?
  if ((${#fr_first} == 4096)); then
    ((__flightrec_seq = (__flightrec_seq + 1) % 10))
    builtin printf '\1P%s\0' "$__flightrec_seq"
    __flightrec_await || builtin return 0
  fi
  __flightrec_writing=1
  if [[ ${PATH-} != "$__flightrec_path" || ${VIRTUAL_ENV-} != "$__flightrec_venv" ||
    ${CONDA_PREFIX-} != "$__flightrec_conda" ]]; then
    __flightrec_report_environment
  fi
  ((__flightrec_seq = (__flightrec_seq + 1) % 10))
  builtin declare -F -- "${fr_first%% *}"
  # An assignment before a command is dear: only where it is needed.
  if [[ -z ${HISTTIMEFORMAT-} ]]; then builtin history 1; else HISTTIMEFORMAT='' builtin history 1; fi
  builtin printf '\0%s\0%s\0\1S%s\0' "${PWD-}" "$fr_first" "$__flightrec_seq$fr_flag#${HISTCMD-}"
  __flightrec_told=1 __flightrec_writing=''
  if ! __flightrec_await; then
    # The relay may only be late: what it surely takes for a new line, it may be told the end of.
    [[ $fr_flag != + ]] || __flightrec_state=run
    builtin return 0
  fi
  case $fr_reply in
    [0-9])
      __flightrec_state=run
      case $fr_first in
        *PROMPT_COMMAND* | 'source '* | '. '*) __flightrec_watch_prompt_command ;;
      esac
      ;;
    [a-j])
      __flightrec_state=repeat:${!:-}
      __flightrec_watch_for_second
      ;;
    [K-T])
      __flightrec_state=run
      __flightrec_hold
      ;;
  esac
}

# The person wants to be asked before this line runs: Enter or y runs it; e, n or ^C leaves it, by the
# interrupt that ^C is. Where nobody can be asked, or nobody answers, it runs.
__flightrec_hold() {
  builtin local fr_key=''
  # A trap of the person's would be sprung by the interrupt, and the line would run.
  builtin trap -p INT >&0
  if builtin read -r -t 0; then
    builtin printf '\0' >&0
    IFS='' builtin read -r -d '' fr_key
    builtin return 0
  fi
  # What was typed ahead is no answer.
  if builtin read -r -t 0 </dev/tty; then builtin return 0; fi
  builtin printf 'flightrec: run it? (Enter or y: yes; e or n: no) ' >/dev/tty
  while IFS='' builtin read -r -s -n 1 -t "$__flightrec_hold_s" fr_key </dev/tty; do
    case $fr_key in
      '' | [yY]) builtin break ;;
      [eEnN]) builtin kill -INT "$$" ;;
    esac
  done
  # The question is not the command's output, nor its time.
  builtin printf '\n' >/dev/tty
  [[ -z $__flightrec_mark ]] || builtin printf '%sC\a' "$__flightrec_mark" >/dev/tty
  builtin printf '\1G0\0'
}

# Whether the relay answers again: late to the question that it missed, or to a probe now and then
# (`read` may lose the byte that comes as its time is over).
__flightrec_is_back() {
  if [[ -n $__flightrec_writing ]]; then
    # Interrupted in a record. While nobody has read it, one byte more might block for ever.
    if builtin read -r -t 0 <>"$__flightrec_in"; then builtin return 1; fi
    __flightrec_writing=''
    builtin printf '\0\1P0\0' # ends what was begun, and is dropped with it
  fi
  if [[ -z $__flightrec_missed ]]; then
    builtin return 0
  elif builtin read -r -t 0; then
    __flightrec_missed=''
  elif ((__flightrec_began - __flightrec_missed > 2000000)); then
    __flightrec_missed=$__flightrec_began
    builtin printf '\1P0\0'
    builtin return 1
  else
    builtin return 1
  fi
}

__flightrec_report_environment() {
  __flightrec_path=${PATH-} __flightrec_venv=${VIRTUAL_ENV-} __flightrec_conda=${CONDA_PREFIX-}
  builtin printf '%s\0%s\0%s\0\1E\0' \
    "$__flightrec_path" "$__flightrec_venv" "$__flightrec_conda"
}

# Set `fr_reply` to the answer to the last question; answers to earlier ones are passed over. The first
# that does not come in time turns capture off.
__flightrec_await() {
  while builtin read -r -N 1 -t "$__flightrec_patience" fr_reply; do
    case $fr_reply in
      "$__flightrec_seq" | "${__flightrec_letters:__flightrec_seq:1}" | \
        "${__flightrec_capitals:__flightrec_seq:1}" | \
        "${__flightrec_holds:__flightrec_seq:1}") builtin return 0 ;;
    esac
  done
  __flightrec_missed=$__flightrec_began
  builtin return 1
}

# History did not grow: the line may be the last one once more, or a private variant of it that begins
# the same (` ls; secret`). Let a second command in it be seen; where the person has a trap, it cannot.
# shellcheck disable=SC2016 # expanded when the trap is sprung
__flightrec_watch_for_second() {
  if [[ $__flightrec_then == - && -z $__flightrec_cooperates ]]; then
    __flightrec_then='if [[ $__flightrec_state == repeat:* && $BASH_COMMAND != *__flightrec_* ]]; then
  __flightrec_state=skip
  trap - DEBUG
fi'
  else
    __flightrec_state=skip
  fi
}

# A command that may replace all of PROMPT_COMMAND: be sprung once more by whatever runs next.
# shellcheck disable=SC2016 # expanded when the trap is sprung
__flightrec_watch_prompt_command() {
  [[ $__flightrec_then != - || $__flightrec_cooperates ]] ||
    __flightrec_then='if [[ $BASH_COMMAND != *__flightrec_* ]]; then
  { __flightrec_keep_prompt_command; } 2>/dev/null
  trap - DEBUG
fi'
}

# At the prompt, once for each of our elements; the second finds nothing more to do. Arguments: exit
# status, PIPESTATUS.
__flightrec_finished() {
  builtin local IFS=' ' fr_usec='' fr_reply
  ((__flightrec_armed == 0)) || __flightrec_catch_up
  case $__flightrec_state in
    run) __flightrec_report "$1" "${*:2}" ;;
    repeat:*) __flightrec_report_repeat "$1" "${*:2}" ;;
  esac
  __flightrec_state=idle
  __flightrec_armed=0
}

__flightrec_report() {
  ((__flightrec_seq = (__flightrec_seq + 1) % 10))
  [[ -p $__flightrec_in && -e $__flightrec_alive && -z $__flightrec_writing ]] || builtin return 0
  # Inside the proxy: where the command's output ends.
  [[ -z $__flightrec_mark ]] || builtin printf '%sD%s\a' "$__flightrec_mark" "$__flightrec_seq" >/dev/tty
  builtin printf '%s\0%s\0%s\0%s\0\1F%s\0' "$1" "$2" "${PWD-}" "$fr_usec" "$__flightrec_seq" \
    1<>"$__flightrec_in"
  # A hint about what just failed is to stand before the prompt.
  [[ -z $1 || $1 == 0 || $__flightrec_missed ]] || __flightrec_await <>"$__flightrec_out"
}

# `! ls` shows in PIPESTATUS and `ls &` in $!; a second command has set the state to skip.
__flightrec_report_repeat() {
  [[ $__flightrec_state == "repeat:${!:-}" && $2 == "$1" ]] || builtin return 0
  __flightrec_report "$1" "$2"
}

# Lines that no trap has seen: `( ... )`, under set -x, or the second and later ones of a paste.
__flightrec_catch_up() {
  builtin local "fr_lines=$__flightrec_armed" fr_before=0 fr_flag='=' fr_reply
  if [[ $__flightrec_state == run ]]; then
    __flightrec_report '' '' # the status at hand is the last line's, not this one's
    fr_before=1
  elif [[ $__flightrec_state != idle ]]; then
    fr_before=1
  fi
  __flightrec_state=skip __flightrec_is_set=''
  [[ -o history && -z ${FLIGHTREC_OFF-}$__flightrec_missed$__flightrec_writing ]] || builtin return 0
  [[ -p $__flightrec_in && -e $__flightrec_alive ]] || builtin return 0
  if ((${HISTCMD:-0} == __flightrec_entry + fr_lines + fr_before)); then fr_flag='+'; fi
  if [[ -z ${HISTCMD-} || ${HISTCONTROL-} == *erasedups* ]]; then fr_flag='?'; fi
  [[ $fr_flag == + || $fr_lines$fr_flag == 1\? ]] || builtin return 0
  ((fr_usec = ${EPOCHREALTIME/[.,]/} - __flightrec_began, __flightrec_seq = (__flightrec_seq + 1) % 10))
  __flightrec_writing=1
  {
    HISTTIMEFORMAT='' builtin history "$fr_lines"
    builtin printf '\0%s\0\0\1L%s\0' "${PWD-}" \
      "$__flightrec_seq$fr_flag#$((${HISTCMD:-0} - fr_lines))"
    __flightrec_writing=''
    __flightrec_await
  } 1<>"$__flightrec_in" <>"$__flightrec_out"
  __flightrec_state=run __flightrec_told=1
}

# The first element of PROMPT_COMMAND. Where somebody has put a command before it in the same string,
# $? is that command's: leave it to the last element.
__flightrec_at_first() {
  if [[ ${PROMPT_COMMAND[0]-} == "$__flightrec_first"* ]]; then
    __flightrec_finished "$@"
  fi
  [[ ${PROMPT_COMMAND[99]-} == "$__flightrec_last" || -n $__flightrec_cooperates ]] ||
    __flightrec_keep_prompt_command
}

# Make ready for the next line; standard input has what `trap -p DEBUG` printed, if anything. Ours takes
# itself away, so a trap that was there is the person's. Return whether the trap is to be set.
__flightrec_prepare() {
  builtin local fr_found=''
  if [[ -z $__flightrec_is_set$__flightrec_cooperates ]] && builtin read -r -t 0; then
    builtin printf '\0'
    IFS='' builtin read -r -d '' fr_found
  fi
  [[ ${PS0-} == *"$__flightrec_arm"* && $BASHOPTS == *promptvars* ]] || __flightrec_keep_ps0
  # Where the number of an entry tells nothing, the relay compares texts.
  [[ -n ${HISTCMD-} && ${HISTCONTROL-} != *erasedups* ]] || __flightrec_note_history
  __flightrec_told=''
  __flightrec_entry=${HISTCMD:-0}
  if [[ -z $__flightrec_cooperates ]]; then
    if [[ -n ${bash_preexec_imported-}${__bp_imported-} ]]; then
      __flightrec_cooperate
    elif [[ ${PROMPT_COMMAND[0]-} != "$__flightrec_first"* ]]; then
      __flightrec_keep_prompt_command
    fi
  fi
  # Under set -x and set -v the trap's own lines would be seen; catch_up does without it. Without
  # promptvars nothing would spring it.
  [[ -z $__flightrec_cooperates$__flightrec_is_set && $- != *[xv]* && $BASHOPTS == *promptvars* ]] ||
    builtin return 1
  [[ -z $fr_found && $__flightrec_then == - ]] || __flightrec_compose "$fr_found"
  __flightrec_is_set=1
}

# The person's trap goes on firing, and is what `trap -p` shows while a command runs.
__flightrec_compose() {
  # A late answer of the relay's may stand before it. (Quoted: `builtin local` splits words.)
  builtin local "fr_found=${1#"${1%%[!0-9a-jA-J]*}"}"
  [[ $fr_found == "$1" ]] || __flightrec_missed=''
  builtin set --
  [[ $fr_found != 'trap -- '* ]] || builtin eval "builtin set -- $fr_found"
  [[ -z ${3-} || $3 != "$__flightrec_trap" ]] || builtin return 0 # ours: `( ... )` springs none
  __flightrec_then=-
  __flightrec_trap=$__flightrec_debug
  if [[ -n ${3-} && $3 != *__flightrec_* ]]; then
    __flightrec_then=$3
    __flightrec_trap+=$'\n'$3
  fi
}

# The relay has to know the last entry also where the line before was a syntax error.
__flightrec_note_history() {
  if [[ -z $__flightrec_told$__flightrec_missed$__flightrec_writing && -p $__flightrec_in && -e $__flightrec_alive ]]; then
    {
      HISTTIMEFORMAT='' builtin history 1
      builtin printf '\0\1H\0'
    } 1<>"$__flightrec_in"
  fi
}

__flightrec_start
