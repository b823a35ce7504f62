_pintle() {
    local -a found
    found=("${(@f)$(pintle __complete "${(@)words[2,CURRENT]}" 2> /dev/null)}")
    if (( ${#found} )) && [[ -n "${found[1]}" ]]; then
        compadd -S '' -- "${(@M)found:#*=}"
        compadd -- "${(@)found:#*=}"
    else
        _files
    fi
}
compdef _pintle pintle
