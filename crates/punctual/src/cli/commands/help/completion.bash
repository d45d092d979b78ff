# Completion of punctual for bash: the program itself knows the words.
_punctual() {
    local IFS=$'\n'
    COMPREPLY=($("$1" complete bash -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null))
    case ${COMPREPLY-} in *[=:]) [ ${#COMPREPLY[@]} -ne 1 ] || compopt -o nospace 2>/dev/null ;; esac
}
complete -o bashdefault -o default -F _punctual punctual
