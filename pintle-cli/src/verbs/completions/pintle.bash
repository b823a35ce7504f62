_pintle() {
    local line="${COMP_LINE:0:COMP_POINT}" words word current prefix IFS=$' \t\n'
    read -r -a words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    current="${words[${#words[@]} - 1]}"
    # Bash replaces only what follows the last `=` or `:`, which is its second argument.
    prefix="${current%"$2"}"
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("${word#"$prefix"}")
    done < <(pintle __complete "${words[@]:1}" 2> /dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *= ]] && compopt -o nospace 2> /dev/null
    return 0
}
complete -o default -F _pintle pintle
