# See .zshenv.
_flightrec_theirs
if [[ -r ${ZDOTDIR:-$HOME}/.zlogin ]]; then
  builtin source ${ZDOTDIR:-$HOME}/.zlogin
fi
_flightrec_next
