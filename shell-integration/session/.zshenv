# ZDOTDIR of a zsh that `flightrec shell` starts: zsh reads this first, and everything else where the
# person has it. flightrec, which may not be in that, is loaded before the first prompt.

if [[ -n ${FLIGHTREC_ZDOTDIR-} ]]; then
  ZDOTDIR=$FLIGHTREC_ZDOTDIR
else
  builtin unset ZDOTDIR
fi
builtin unset FLIGHTREC_ZDOTDIR

__flightrec_load() {
  precmd_functions=(${precmd_functions:#__flightrec_load})
  builtin unfunction __flightrec_load
  builtin local fr_code=${FLIGHTREC_LOAD-}
  builtin unset FLIGHTREC_LOAD
  builtin eval "$fr_code"
}
builtin typeset -ga precmd_functions
precmd_functions+=(__flightrec_load)

if [[ -r ${ZDOTDIR:-$HOME}/.zshenv ]]; then
  builtin source ${ZDOTDIR:-$HOME}/.zshenv
fi
