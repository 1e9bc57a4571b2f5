# Runs the steps of a script of this folder, which sources this file: each step is a function `step_NAME`, and `steps` lists the names in
# their order. Prints the seconds of each step and, at the end, the three longest.
#
#   SCRIPT                all steps
#   SCRIPT --from STEP    that step and those behind it
#   SCRIPT --only STEP    that step alone
#   SCRIPT --list         names of the steps

run_steps() {
    local usage="usage: $0 [--from STEP | --only STEP | --list]" chosen=("${steps[@]}") name i first=-1 began took=()
    case ${1:-} in
        '') ;;
        --list) printf '%s\n' "${steps[@]}"; return ;;
        --from | --only)
            for i in "${!steps[@]}"; do
                if [ "${steps[$i]}" = "${2:-}" ]; then first=$i; fi
            done
            [ "$first" -ge 0 ] || { echo "$0: no step is called '${2:-}'; the steps are: ${steps[*]}" >&2; exit 2; }
            if [ "$1" = --only ]; then chosen=("${steps[$first]}"); else chosen=("${steps[@]:$first}"); fi
            ;;
        *) echo "$usage" >&2; exit 2 ;;
    esac
    for name in "${chosen[@]}"; do
        began=$SECONDS
        printf '\n=== %s (%ss)\n' "$name" "$SECONDS"
        # Not in a condition, where `set -e` would not hold within the function.
        "step_$name"
        took+=("$((SECONDS - began)) $name")
    done
    printf '\nSeconds of each step:\n'
    printf '%6s %s\n' $(printf '%s ' "${took[@]}")
    printf 'Longest: %s\n' "$(printf '%s\n' "${took[@]}" | sort -rn | head -3 | awk '{ printf "%s%s %ss", (NR > 1 ? ", " : ""), $2, $1 }')"
    printf 'All passed in %ss.\n' "$SECONDS"
}
