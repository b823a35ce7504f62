_pintle() {
    local line="${COMP_LINE:0:COMP_POINT}" words current prefix IFS=$' \t\n'
    read -r -a words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    current="${words[-1]}"
    mapfile -t COMPREPLY < <(pintle __complete "${words[@]:1}" 2> /dev/null)
    # Bash completes what follows the last `=` or `:`.
    prefix="${current%"${current##*[=:]}"}"
    COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
    [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *= ]] && compopt -o nospace
    return 0
}
complete -o default -F _pintle pintle
