complete -c pintle -a '(pintle __complete (commandline -opc)[2..-1] (commandline -ct) 2> /dev/null)'
