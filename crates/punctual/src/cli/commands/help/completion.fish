# Completion of punctual for fish: the program itself knows the words.
function __punctual_words
    set -l words (commandline -opc) (commandline -ct)
    $words[1] complete fish -- $words 2>/dev/null
end
complete -c punctual -n 'count (__punctual_words) >/dev/null' -f -a '(__punctual_words)'
