# Read by bash-env.bash where the helper wants to know PIPESTATUS.
#
# A restricted shell may write into no file, not even /dev/null, and under `ulimit -f` the system ends who
# does. `!`: no failure for `set -e`.

_flightrec_status=$FLIGHTREC_STATUS
{ ! builtin trap -p EXIT >|"$_flightrec_status"; } 2>/dev/null
if [[ ! -s $_flightrec_status ]]; then # a profile has none of its own
  builtin trap \
    '{ _flightrec_status+=("$?" "${PIPESTATUS[@]}"); builtin trap "" XFSZ
       ! builtin printf "%s " "${_flightrec_status[@]:1}" >|"$_flightrec_status"; } 2>&-' EXIT
fi
