# See .zshenv.
_flightrec_theirs
if [[ -r ${ZDOTDIR:-$HOME}/.zprofile ]]; then
  builtin source ${ZDOTDIR:-$HOME}/.zprofile
fi
_flightrec_next zshrc
