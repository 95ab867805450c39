// `slipway completion bash|zsh|fish`: a script for the shell, made from the table of verbs, so that it knows what this program knows.
import { withSecretFiles } from "#base/config/secret-files.ts";
import { flagOf } from "#base/config/setting.ts";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import { usageError } from "#base/usage-error.ts";
import { EXIT, type RunVerb, type Verb } from "./verb.ts";

/** What can stand behind a verb. */
type Known = { name: string; help: string; words: string[]; flags: string[] };

/** The verb for a program that has these verbs. */
export const completionOf =
  (verbs: readonly Verb[]): RunVerb =>
  async ({ argv, print }) => {
    const [shell = "", more] = argv;
    const script = SCRIPTS[shell];
    if (!script || more !== undefined) throw usageError(more ?? (shell || "completion"), "expected bash, zsh or fish");
    print(
      script([
        { name: "help", help: "Explain a verb.", words: verbs.map(({ name }) => name), flags: [] },
        ...verbs.map(knownOf),
      ]),
    );
    return EXIT.ok;
  };

const SETTINGS_OF_SERVE = "Takes the settings of `serve`";

const knownOf = ({ name, help, usage, details }: Verb): Known => {
  const explained = `${usage}\n${details?.() ?? ""}`;
  const [choices = ""] = /^[a-z-]+(\|[a-z-]+)+/.exec(usage) ?? [];
  const own = [...explained.matchAll(/(?<![\w-])--[a-z][a-z-]*/g)].map(([flag]) => flag);
  const settings = explained.includes(SETTINGS_OF_SERVE)
    ? Object.keys(withSecretFiles(SERVER_SETTINGS)).map(flagOf)
    : [];
  return {
    name,
    help,
    words: choices.split("|").filter(Boolean),
    flags: [...new Set([...own, ...settings, "--help"])],
  };
};

const bash = (verbs: readonly Known[]): string => `# Completion of slipway for bash: eval "$(slipway completion bash)"
_slipway() {
  local word=\${COMP_WORDS[COMP_CWORD]} choices
  if [ "$COMP_CWORD" -eq 1 ]; then choices="${verbs.map(({ name }) => name).join(" ")}"
  else
    case \${COMP_WORDS[1]} in
${verbs.map(({ name, words, flags }) => `      ${name}) choices="${[...words, ...flags].join(" ")}" ;;`).join("\n")}
    esac
  fi
  COMPREPLY=($(compgen -W "$choices" -- "$word"))
  if [ "\${#COMPREPLY[@]}" -eq 0 ]; then COMPREPLY=($(compgen -f -- "$word")); fi
}
complete -F _slipway slipway`;

const zsh = (verbs: readonly Known[]): string => `#compdef slipway
# Completion of slipway for zsh: slipway completion zsh > "\${fpath[1]}/_slipway"
_slipway() {
  if (( CURRENT == 2 )); then
    local -a verbs=(
${verbs.map(({ name, help }) => `      ${quoted(`${name}:${help}`)}`).join("\n")}
    )
    _describe verb verbs
    return
  fi
  case $words[2] in
${verbs.map(({ name, words, flags }) => `    ${name}) compadd -- ${[...words, ...flags].join(" ")}; _files ;;`).join("\n")}
  esac
}
if [ "$funcstack[1]" = _slipway ]; then _slipway "$@"; else compdef _slipway slipway; fi`;

const fish = (verbs: readonly Known[]): string => {
  const lines = verbs.flatMap(({ name, help, words, flags }) => {
    const inside = `-n '__fish_seen_subcommand_from ${name}'`;
    return [
      `complete -c slipway -n __fish_use_subcommand -f -a ${name} -d ${quoted(help)}`,
      ...(words.length > 0 ? [`complete -c slipway ${inside} -f -a '${words.join(" ")}'`] : []),
      ...flags.map((flag) => `complete -c slipway ${inside} -l ${flag.slice(2)}`),
    ];
  });
  return ["# Completion of slipway for fish: slipway completion fish | source", ...lines].join("\n");
};

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const SCRIPTS: Readonly<Record<string, (verbs: readonly Known[]) => string>> = { bash, zsh, fish };
