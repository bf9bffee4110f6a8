# See .zshenv.
_flightrec_theirs
if [[ -r ${ZDOTDIR:-$HOME}/.zshrc ]]; then
  builtin source ${ZDOTDIR:-$HOME}/.zshrc
fi
_flightrec_next zlogin
