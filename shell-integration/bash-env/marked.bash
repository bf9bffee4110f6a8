# Read by bash-env.bash where an agent's settings name it, without `flightrec run`.
#
# The helper finds agent and session by the agent's marks (shim/marks.c), and all else is as in a
# recorded run. The person's own variables are those that the agent was started with.
# shellcheck disable=SC2034 # used elsewhere

{ builtin mapfile -d '' -t _flightrec_words <"/proc/$PPID/environ"; } 2>/dev/null || builtin :
for _flightrec_word in "${_flightrec_words[@]}"; do
  case $_flightrec_word in
    "BASH_ENV=$BASH_ENV" | "ZDOTDIR=${ZDOTDIR-}") ;;
    BASH_ENV=*) builtin : "${FLIGHTREC_BASH_ENV=${_flightrec_word#*=}}" ;;
    ZDOTDIR=*) builtin : "${FLIGHTREC_ZDOTDIR=${_flightrec_word#*=}}" ;;
  esac
done
if [[ ${AI_AGENT-} != *_harness &&
      ${CLAUDECODE-}${CODEX_THREAD_ID-}${OPENCODE-}${PI_CODING_AGENT-}${COPILOT_CLI-} ]]; then
  _flightrec_marked=1
  FLIGHTREC_SCRIPTS=${BASH_ENV%/*} FLIGHTREC_HELPER=${BASH_ENV%/*}/flightrec-helper
  builtin export FLIGHTREC_SCRIPTS FLIGHTREC_HELPER # under `set -k`, none takes an assignment
  [[ -z ${FLIGHTREC_BASH_ENV-} ]] || builtin export FLIGHTREC_BASH_ENV
  [[ -z ${FLIGHTREC_ZDOTDIR-} ]] || builtin export FLIGHTREC_ZDOTDIR
fi
