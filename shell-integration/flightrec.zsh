# flightrec for interactive zsh 5.3 and later.
#
# A guest: no process is started per command, no option, hook, history or prompt of the person's is
# changed. README.md beside this file says why each trick is there. Everything fails open: where
# anything is missing, the shell is as without us.
#
# Every guard stands in a function: a `return` at top level would end the rc file that evals this text.

__flightrec_start() {
  builtin emulate -L zsh
  # Once per process: under `setopt allexport` our variables reach the shells that this one starts.
  [[ -o interactive && ${__flightrec_shell-} != $$ ]] || return 0
  [[ -z ${FLIGHTREC_OFF-} && -z ${SUDO_UID-} ]] || return 0
  builtin typeset -g __flightrec_shell=$$ __flightrec_relay=''
  builtin local -a fr_version
  fr_version=(${(s:.:)ZSH_VERSION})
  if (( fr_version[1] * 100 + ${fr_version[2]%%[^0-9]*} < ${__flightrec_least_zsh:-503} )); then
    builtin print -ru2 -- "flightrec: zsh $ZSH_VERSION is too old to be recorded (5.3 is needed)"
    return 0
  fi
  builtin zmodload zsh/system zsh/parameter 2>/dev/null || return 0
  # Where this function was defined; not %x, which shows odd characters as something else.
  __flightrec_find_helper ${${funcsourcetrace[1]%:*}:h} || return 0
  if ! __flightrec_is_inside; then
    builtin eval "$("$__flightrec_helper" relay zsh $$ "${__flightrec_command-}" 2>/dev/null)"
  fi
  [[ -n ${__flightrec_relay-} ]] || return 0
  __flightrec_set_up || return 0
  builtin autoload -Uz add-zsh-hook
  add-zsh-hook preexec __flightrec_preexec
  # First, so that the time of other hooks is not the command's. zsh gives each the true $?.
  builtin typeset -ga precmd_functions
  precmd_functions=(__flightrec_precmd "${(@)precmd_functions:#__flightrec_precmd}")
}

# Inside the proxy, whose worker does the relay's work. Its variable reaches whatever this shell starts,
# so it holds for one process on one terminal.
__flightrec_is_inside() {
  builtin typeset -g __flightrec_mark=''
  builtin local -a fr_parts
  fr_parts=("${(@s.:.)FLIGHTREC_PTY-}")
  builtin local fr_folder=${(j.:.)fr_parts[5,-1]}
  [[ $fr_parts[1] == $$ && /dev/fd/0 -ef $fr_parts[4] ]] || return 1
  [[ -p $fr_folder/i && -p $fr_folder/o ]] || return 1
  builtin typeset -g __flightrec_in=$fr_folder/i __flightrec_out=$fr_folder/o
  builtin typeset -g __flightrec_relay=$fr_parts[2]
  __flightrec_mark=$'\e]6973;'$fr_parts[3]';'
}

# Where `flightrec init` did not say it: beside this file, as in the package, or in the source tree.
__flightrec_find_helper() {
  builtin local fr_candidate
  for fr_candidate in "${__flightrec_helper-}" $1/flightrec-helper $1/../shim/build/flightrec-helper; do
    if [[ $fr_candidate == */* && -f $fr_candidate && -x $fr_candidate ]]; then
      builtin typeset -g __flightrec_helper=${fr_candidate:a}
      return 0
    fi
  done
  return 1
}

# The two FIFOs stay open here, hidden from every program that the shell starts.
__flightrec_set_up() {
  builtin typeset -g __flightrec_alive=/proc/$__flightrec_relay/fd/0
  builtin typeset -g __flightrec_state=idle # idle, run, held, skip
  builtin typeset -gi __flightrec_seq=0 __flightrec_to=-1 __flightrec_from=-1
  builtin typeset -g __flightrec_missed='' # set: the relay did not answer in time, and when
  builtin typeset -g __flightrec_patience=0.025 # seconds; the relay itself waits 20 ms for the daemon
  if [[ ${FLIGHTREC_PATIENCE_MS-} == [1-9]* && $FLIGHTREC_PATIENCE_MS != *[^0-9]* && ${#FLIGHTREC_PATIENCE_MS} -lt 5 ]]; then
    __flightrec_patience=$(( (FLIGHTREC_PATIENCE_MS + 5) / 1000. ))
  fi
  builtin typeset -g __flightrec_path='' __flightrec_venv='' __flightrec_conda=''
  builtin typeset -g __flightrec_hold_s=30 # how long a held line waits for a key
  sysopen -rw -o cloexec -u __flightrec_to $__flightrec_in 2>/dev/null || return 1
  sysopen -rw -o cloexec -u __flightrec_from $__flightrec_out 2>/dev/null
}

# $1 is the line as it was typed; it is empty where zsh keeps no history of it.
__flightrec_preexec() {
  # Traps are local here (emulate -L): the person's would fire for every line of ours.
  { builtin emulate -L zsh; builtin setopt noxtrace nomultibyte; builtin trap - DEBUG; } 2>/dev/null
  builtin local fr_reply=''
  __flightrec_state=skip
  [[ -n $1 && $1 != [[:blank:]]* && -z ${FLIGHTREC_OFF-} ]] || return 0
  [[ -z ${HISTORY_IGNORE-} || $1 != ${~HISTORY_IGNORE} ]] || return 0
  [[ -e $__flightrec_alive ]] || return 0 # gone with the relay, also while it is a zombie
  if [[ -n $__flightrec_missed ]]; then
    __flightrec_is_back || return 0
  fi
  if [[ ${PATH-} != $__flightrec_path || ${VIRTUAL_ENV-} != $__flightrec_venv ||
    ${CONDA_PREFIX-} != $__flightrec_conda ]]; then
    __flightrec_report_environment
  fi
  builtin local fr_word=${1%%[[:space:]]*} fr_kind=0
  if (( $+aliases[$fr_word] )); then fr_kind=1
  elif (( $+functions[$fr_word] )); then fr_kind=2
  elif (( $+builtins[$fr_word] )); then fr_kind=3
  fi
  (( __flightrec_seq = (__flightrec_seq + 1) % 10 ))
  # Inside the proxy: where the command's output begins.
  [[ -z $__flightrec_mark ]] || builtin print -rn -- $__flightrec_mark$'C\a' >/dev/tty
  syswrite -o $__flightrec_to -- \
    "${1[1,16384]}"$'\0'"${PWD-}"$'\0'"$fr_kind${#1}"$'\0\1S'"${__flightrec_seq}z"$'\0' || return 0
  # No answer: the relay may only be late, and may be told the end. A capital: it is not to be told.
  if ! __flightrec_await || [[ $fr_reply == *[0-9]* ]]; then
    __flightrec_state=run
  elif [[ $fr_reply == *[K-T]* ]]; then
    __flightrec_hold
  fi
}

# The person wants to be asked before this line runs: Enter or y runs it; e, n or ^C leaves it, by the
# interrupt that ^C is. Where nobody can be asked, or nobody answers, it runs.
__flightrec_hold() {
  builtin local fr_key=''
  builtin local -a fr_ready
  __flightrec_state=held
  builtin trap - INT # local, as above: the person's would let the line run
  # What was typed ahead is no answer.
  if [[ -t 0 ]] && builtin zmodload zsh/zselect 2>/dev/null && ! zselect -t 0 -a fr_ready -r 0; then
    builtin print -rn -- 'flightrec: run it? (Enter or y: yes; e or n: no) ' >/dev/tty
    while builtin read -rsk 1 -t $__flightrec_hold_s fr_key; do
      case $fr_key in
        $'\n' | $'\r' | [yY]) builtin break ;;
        [eEnN])
          builtin print >/dev/tty
          builtin kill -INT $$
          return 0
          ;;
      esac
    done
    builtin print >/dev/tty
    # The question is not the command's output, nor its time.
    [[ -z $__flightrec_mark ]] || builtin print -rn -- $__flightrec_mark$'C\a' >/dev/tty
    syswrite -o $__flightrec_to -- $'\1G0\0'
  fi
  __flightrec_state=run
}

# Whether the relay answers again: late to the question that it missed, or to a probe now and then.
__flightrec_is_back() {
  if sysread -s 64 -t 0 -i $__flightrec_from fr_reply 2>/dev/null; then
    __flightrec_missed=''
    return 0
  fi
  if (( SECONDS - __flightrec_missed > 2 )); then
    __flightrec_missed=$SECONDS
    syswrite -o $__flightrec_to -- $'\1P0\0'
  fi
  return 1
}

__flightrec_report_environment() {
  __flightrec_path=${PATH-} __flightrec_venv=${VIRTUAL_ENV-} __flightrec_conda=${CONDA_PREFIX-}
  syswrite -o $__flightrec_to -- \
    "$__flightrec_path"$'\0'"$__flightrec_venv"$'\0'"$__flightrec_conda"$'\0\1E\0'
}

# Wait for the answer to the last question and set `fr_reply`; answers to earlier ones are passed over.
# The first that does not come in time turns capture off.
__flightrec_await() {
  builtin local fr_expected=${${:-0AK1BL2CM3DN4EO5FP6GQ7HR8IS9JT}[__flightrec_seq*3+1,__flightrec_seq*3+3]}
  while sysread -s 64 -t $__flightrec_patience -i $__flightrec_from fr_reply 2>/dev/null; do
    [[ $fr_reply != *[$fr_expected]* ]] || return 0
  done
  __flightrec_missed=$SECONDS
  return 1
}

__flightrec_precmd() {
  {
    builtin local fr_result=$? fr_pipe="$pipestatus" fr_reply=''
    builtin emulate -L zsh
    builtin setopt noxtrace
    builtin trap - DEBUG
  } 2>/dev/null
  [[ $__flightrec_state != held ]] || { __flightrec_state=run; fr_result=130; } # it was not run
  if [[ $__flightrec_state == run && -e $__flightrec_alive ]]; then
    (( __flightrec_seq = (__flightrec_seq + 1) % 10 ))
    # Inside the proxy: where the command's output ends.
    [[ -z $__flightrec_mark ]] || builtin print -rn -- "${__flightrec_mark}D$__flightrec_seq"$'\a' >/dev/tty
    syswrite -o $__flightrec_to -- \
      "$fr_result"$'\0'"$fr_pipe"$'\0'"${PWD-}"$'\0\0\1F'"$__flightrec_seq"$'\0'
    # A hint about what just failed is to stand before the prompt.
    (( fr_result == 0 )) || [[ -n $__flightrec_missed ]] || __flightrec_await
  fi
  __flightrec_state=idle
  return $fr_result
}

__flightrec_start
