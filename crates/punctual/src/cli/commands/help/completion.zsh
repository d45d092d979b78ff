#compdef punctual
# Completion of punctual for zsh: the program itself knows the words.
local -a found open
found=("${(@f)$("${(Q)words[1]}" complete zsh -- "${(@)words[1,CURRENT]}" 2>/dev/null)}")
# Words like `fifo:` go on.
open=(${(M)found:#*(\\:|=):*})
found=(${found:#*(\\:|=):*})
(( $#found + $#open )) || { _files; return }
local status_of_all=1
(( $#found )) && _describe punctual found && status_of_all=0
(( $#open )) && _describe punctual open -S '' && status_of_all=0
return status_of_all
