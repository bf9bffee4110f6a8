# Read by bash-env.bash where the helper wants to know PIPESTATUS.

_flightrec_status=$FLIGHTREC_STATUS
builtin trap \
  '{ builtin printf "%s " "$?" "${PIPESTATUS[@]}" >|"$_flightrec_status"; } 2>/dev/null' EXIT
