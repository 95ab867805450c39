// Redacts log lines before they leave the machine: anything that could be a secret or personal data. Slipway's own
// messages never contain secrets (src/base/log.ts), but the errors of other programs may.

import { replaceJsonWebTokens } from "./text/json-web-tokens.ts";

// Repetitions are bounded, so that text from outside cannot cause quadratic time.
const AUTHORIZATION = /\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi;
const RULES: readonly [RegExp, string][] = [
  // Slipway's API keys, `<id>-<secret>`; the ID is kept to identify the key.
  [/\b([A-Za-z0-9]{10})-[A-Za-z0-9]{22}\b/g, "$1-(hidden)"],
  [/\b(sk|pk|rk|gh[opsur]|github_pat|glpat|gsk|hf|xox[abeprs]|ya29)([-_.])[A-Za-z0-9_.-]{12,}/g, "$1$2(hidden)"],
  [/\b(AIza|AKIA|ASIA)[A-Za-z0-9_-]{14,}/g, "$1(hidden)"],
  // All cookies of a line, whatever their names.
  [/\b((?:set-)?cookie\\?["']?\s*[=:]\s*\\?["']?)[^"'\\\r\n]+/gi, "$1(hidden)"],
  // An agent's token is a UUID after a word such as `token`.
  [/\b((?:token|secret|key)\s+)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi, "$1(hidden)"],
  // `--admin-password x`, as shown by `ps` and shells.
  [/(--[a-z-]{0,40}(?:token|secret|password|key)[ =]{1,8})(?!-)("[^"]*"|'[^']*'|\S+)/g, "$1(hidden)"],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g, "(hidden)"],
  [/(:\/\/[^\s/:@"]*:)[^\s/@"]+@/g, "$1(hidden)@"],
  // Values with a secret's name in text (`token=x`), JSON (`"token":"x"`, also inside a string) and queries (`?token=x`).
  [
    /((?:token|secret|passw(?:or)?d|api[-_]?key|private[-_]?key|cookie|authorization|code|state)\\?["']?\s*[=:]\s*\\?["']?)(?!\(hidden\))[^\s"'\\&,;}]+/gi,
    "$1(hidden)",
  ],
  [/[\w.+-]{1,64}@[\w-]{1,63}(\.[\w-]{1,63}){1,8}/g, "(email)"],
];

export const redact = (text: string): string =>
  RULES.reduce(
    (redacted, [pattern, replacement]) => redacted.replace(pattern, replacement),
    replaceJsonWebTokens(text.replace(AUTHORIZATION, "$1 (hidden)"), "(hidden)"),
  );
