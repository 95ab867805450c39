// Takes out of log lines what could be a secret or name a person, before they leave the machine. The log itself holds none by its own
// rule (src/base/log.ts); this is for what errors of others may have brought in.

// Bounded where something may be repeated: text that others have made up must not take time in the square of its length.
const RULES: readonly [RegExp, string][] = [
  // Keys of ours, `<id>-<secret>`: the id says which one.
  [/\b([A-Za-z0-9]{10})-[A-Za-z0-9]{22}\b/g, "$1-(hidden)"],
  [/\b(sk|pk|rk|gh[opsur]|github_pat|glpat|gsk|hf|xox[abeprs]|ya29)([-_.])[A-Za-z0-9_.-]{12,}/g, "$1$2(hidden)"],
  [/\b(AIza|AKIA|ASIA)[A-Za-z0-9_-]{14,}/g, "$1(hidden)"],
  // All cookies of a line, whatever they are called.
  [/\b((?:set-)?cookie\\?["']?\s*[=:]\s*\\?["']?)[^"'\\\r\n]+/gi, "$1(hidden)"],
  // An agent's token is a UUID, and stands behind the word for it.
  [/\b((?:token|secret|key)\s+)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi, "$1(hidden)"],
  // `--admin-password x`, as `ps` and shells show it.
  [/(--[a-z-]{0,40}(?:token|secret|password|key)[ =]{1,8})(?!-)("[^"]*"|'[^']*'|\S+)/g, "$1(hidden)"],
  [/\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, "(hidden)"],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g, "(hidden)"],
  [/(:\/\/[^\s/:@"]*:)[^\s/@"]+@/g, "$1(hidden)@"],
  [/\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi, "$1 (hidden)"],
  // What is called so, in text (`token=x`), JSON (`"token":"x"`, also inside of a text) and queries (`?token=x`).
  [
    /((?:token|secret|passw(?:or)?d|api[-_]?key|private[-_]?key|cookie|authorization|code|state)\\?["']?\s*[=:]\s*\\?["']?)(?!\(hidden\))[^\s"'\\&,;}]+/gi,
    "$1(hidden)",
  ],
  [/[\w.+-]{1,64}@[\w-]{1,63}(\.[\w-]{1,63}){1,8}/g, "(email)"],
];

export const redacted = (text: string): string => RULES.reduce((so_far, [what, by]) => so_far.replace(what, by), text);
