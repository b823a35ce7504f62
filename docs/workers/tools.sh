# A worker in sh, for `pintle serve`: see docs/workers.md. What is between quotes stays as JSON has it, and is written as it was read.

# Prints the text or number of a member, the first of this name after another one.
member() {
    printf '%s' "${line#*"\"$2\""}" | sed -nE "s/^[^\"]*\"$1\":(\"(([^\"\\\\]|\\\\.)*)\"|([0-9]+)).*/\2\4/p"
}

write() {
    printf '{"call":%s,%s}\n' "$call" "$1"
}

run() {
    call=${line#'{"call":'}
    call=${call%%,*}
    tool=$(member tool call)
    case $tool in
    echo)
        write "\"result\":\"$(member text arguments)\""
        ;;
    count)
        to=$(member to arguments)
        number=1
        while [ "$number" -le "$to" ]; do
            write "\"progress\":$number,\"total\":$to,\"message\":\"$number of $to\""
            number=$((number + 1))
        done
        write "\"result\":{\"counted\":$to}"
        ;;
    order)
        what=$(member what arguments)
        case $line in
        *'"once":{"number":'*) number=$(member number once) ;;
        *)
            number=$call
            write "\"once\":{\"key\":\"number\",\"value\":$number}"
            ;;
        esac
        case $line in
        *'"answers":{"pieces":{"action":"accept"'*)
            write "\"result\":\"Order $number: $(member pieces content) $what\""
            ;;
        *'"answers":{"pieces"'*) write '"result":"Nothing was ordered."' ;;
        *)
            schema='{"type":"object","properties":{"pieces":{"type":"integer"}},"required":["pieces"]}'
            write "\"question\":{\"key\":\"pieces\",\"message\":\"How many pieces of $what?\",\"schema\":$schema}"
            ;;
        esac
        ;;
    *) write "\"error\":\"no such tool: $tool\"" ;;
    esac
}

while IFS= read -r line; do
    case $line in '{"call"'*) run & ;; esac
done
wait
