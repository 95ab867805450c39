// `slipway completion bash|zsh|fish`: prints a shell script that calls this program for each completion (`slipway completion words --
// WORD…`), so that it offers the commands of this version and names from the server.
import { usageError } from "#base/usage-error.ts";
import { EXIT, type RunVerb, type Verb } from "../verb.ts";
import { FILES_CANDIDATE } from "./names.ts";

/** Returns the verb for a program with these verbs. */
export const createCompletionVerb =
  (verbs: readonly Verb[]): RunVerb =>
  async (input) => {
    const [shell = "", more, ...words] = input.argv;
    if (shell === "words" && more === "--") {
      const { formatCompletions } = await import("./candidates.ts");
      for (const line of await formatCompletions(verbs, input, words)) input.print(line);
      return EXIT.ok;
    }
    const script = SCRIPTS[shell];
    if (!script || more !== undefined) throw usageError(more ?? (shell || "completion"), "expected bash, zsh or fish");
    input.print(script);
    return EXIT.ok;
  };

const BASH = `# Completion of slipway for bash: eval "$(slipway completion bash)"
_slipway() {
  local line word=\${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  while IFS= read -r line; do
    if [ "$line" = ${FILES_CANDIDATE} ]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$word")
    else
      COMPREPLY+=("\${line%%$'\\t'*}")
    fi
  done < <("\${COMP_WORDS[0]}" completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _slipway slipway`;

const ZSH = `#compdef slipway
# Completion of slipway for zsh: slipway completion zsh > "\${fpath[1]}/_slipway"
_slipway() {
  local line name
  local -a found
  for line in "\${(@f)$("$words[1]" completion words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == ${FILES_CANDIDATE} ]]; then _files
    elif [[ -n $line ]]; then
      name=\${line%%$'\\t'*}
      found+=("\${name//:/\\\\:}:\${line#*$'\\t'}")
    fi
  done
  (( $#found )) && _describe slipway found
}
if [ "$funcstack[1]" = _slipway ]; then _slipway "$@"; else compdef _slipway slipway; fi`;

const FISH = `# Completion of slipway for fish: slipway completion fish | source
function __slipway_words
  set -l before (commandline -opc)
  set -e before[1]
  set -l word (commandline -ct)
  for line in (slipway completion words -- $before "$word" 2>/dev/null)
    if test "$line" = ${FILES_CANDIDATE}
      __fish_complete_path "$word"
    else
      echo $line
    end
  end
end
complete -c slipway -f -a '(__slipway_words)'`;

const SCRIPTS: Readonly<Record<string, string>> = { bash: BASH, zsh: ZSH, fish: FISH };
