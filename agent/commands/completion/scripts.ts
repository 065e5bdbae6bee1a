/**
 * The scripts that make a shell ask `underpass __complete`. It prints one word and its description a line, or
 * `:file` or `:directory`, so that a script stays correct when the agent is updated.
 */

/**
 * Words are split at spaces here, except those after a backslash, because bash also splits them at `=` and `:`, and replaces
 * only the last part.
 */
const BASH = `# underpass completion for bash
_underpass() {
  local IFS=$' \\t\\n' words current prefix word path
  read -a words <<< "\${COMP_LINE:0:COMP_POINT}"
  [[ \${COMP_LINE:0:COMP_POINT} == *" " ]] && words+=("")
  current=\${words[\${#words[@]}-1]}
  prefix=\${current%"\${current##*[=:]}"}
  COMPREPLY=()
  while IFS=$'\\t' read -r word _; do
    case $word in
      :file | :directory)
        compopt -o filenames 2> /dev/null
        local kind=-f
        [[ $word == :directory ]] && kind=-d
        while IFS= read -r path; do
          COMPREPLY+=("$path")
        done < <(compgen "$kind" -- "\${current##*=}")
        ;;
      *) COMPREPLY+=("\${word#"$prefix"}") ;;
    esac
  done < <(underpass __complete "\${words[@]:1}" 2> /dev/null)
}
complete -F _underpass underpass
`;

const ZSH = `#compdef underpass
# underpass completion for zsh
_underpass() {
  local line
  local -a candidates
  for line in "\${(@f)$(underpass __complete "\${(@Q)words[2,CURRENT]}" 2> /dev/null)}"; do
    case $line in
      :*)
        (( \${#candidates} )) && _describe underpass candidates
        compset -P '--[^=]##='
        if [[ $line == :directory* ]]; then _files -/; else _files; fi
        return
        ;;
      ?*) candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}") ;;
    esac
  done
  (( \${#candidates} )) && _describe underpass candidates
}
if [[ \${funcstack[1]} == _underpass ]]; then
  _underpass "$@"
else
  compdef _underpass underpass
fi
`;

/** fish replaces the whole word, so a path after `--config=` is offered together with that. */
const FISH = `# underpass completion for fish
function __underpass_paths
    set -l option (string match -r '^--[^=]*=' -- (commandline -ct))
    for path in ($argv (string replace -r '^--[^=]*=' '' -- (commandline -ct)))
        echo "$option$path"
    end
end
function __underpass_candidates
    set -l words (commandline -opc) (commandline -ct)
    for line in (underpass __complete $words[2..-1] 2> /dev/null)
        switch $line
            case ':file*'
                __underpass_paths __fish_complete_path
            case ':directory*'
                __underpass_paths __fish_complete_directories
            case '*'
                echo $line
        end
    end
end
complete -c underpass -f -a '(__underpass_candidates)'
`;

/** Each shell with its script, and the command line that installs the script for a user. */
export const SHELLS = {
  bash: {
    script: BASH,
    // The bash of macOS, 3.2, can't read from a process with `source`.
    install: `echo 'eval "$(underpass completion bash)"' >> ~/.bashrc`,
  },
  zsh: {
    script: ZSH,
    install:
      "echo '(( $+functions[compdef] )) || { autoload -Uz compinit; compinit }; source <(underpass completion zsh)' >> ~/.zshrc",
  },
  fish: {
    script: FISH,
    install:
      "mkdir -p ~/.config/fish/completions; underpass completion fish > ~/.config/fish/completions/underpass.fish",
  },
} as const;
