// Patterns that take quadratic time on hostile text.
import { expect, test } from "bun:test";
import { readPage } from "#test/support/documents.ts";
import { isSlow, listPatterns } from "#test/support/slow-patterns.ts";

/** Files that only builds and releases use, on the repository's own text. */
const BUILD_FILES = /^src\/(?:release\/|supply-chain\.ts|web\/(?:build|docs|early|installable)\.ts)/;
const ONE_HYPHEN = "runs of hyphens have become one hyphen";
const NO_LINE_BREAK = "a header has no line break, so the end is always reached";
const OWN_MACHINE = "runs on the machine of the person who chose the text";
/** Patterns that the check reports although their time is linear, or their text is short. */
const HARMLESS: Readonly<Record<string, string>> = {
  "actors/chat/background/record-text.ts: /-----BEGIN [A-Z ]*PRIVATE KEY-----[\\s\\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g":
    "the end of the text ends a match, too",
  "src/base/redact.ts: /-----BEGIN [A-Z ]*PRIVATE KEY-----[\\s\\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g":
    "the end of the text ends a match, too",
  "src/api/ai/headers.ts: /^bearer\\s+(.+)$/i": NO_LINE_BREAK,
  "src/api/applications/headers.ts: /^bearer\\s+(.*)$/i": NO_LINE_BREAK,
  "src/api/metrics/print-monitoring.ts: / \\(\\[[^\\]]+\\]\\([^)]+\\)\\)/g": "the text is a table of the program",
  "src/base/links/external-link.ts: /[a-z][a-z0-9+.-]*$/i": "the text has at most 64 characters",
  "src/base/links/repository-address.ts: /-+$/": ONE_HYPHEN,
  'src/base/people-list.ts: /[^\\S\\t]*"((?:[^"]|"")*)"([^,;\\t]*)|[^,;\\t]+/g':
    "the second alternative takes a run of blanks as a whole",
  "src/cli/client/templates/push.ts: /^-+|-+$/g": ONE_HYPHEN,
  "src/cli/completion/candidates.ts: /\\[[^\\]]*--[^\\]]*\\](\\.\\.\\.)?|--[\\w-]+ \\S+/g":
    "the text is a usage line of the program",
  "src/cli/server/gitssh.ts: /^\\s*port\\s*[=\\s]\\s*(\\d+)\\s*$/i": OWN_MACHINE,
  "src/cli/server/upgrade/service.ts: /argv\\[\\]=(.*?) ;/": OWN_MACHINE,
  "src/cli/server/upgrade/service.ts: /(\\/\\S+) \\(/g": OWN_MACHINE,
  "src/daemon/checkpoints/run.ts: /bad (numeric |boolean )?config|unable to access '.*config'/": OWN_MACHINE,
  "src/daemon/checkpoints/seed.ts: /(\\d{6}) ([0-9a-f]+) \\d\\t([^\\0]+)\\0(?: {2}.*\\n){4} {2}size: (\\d+)\\tflags: ([0-9a-f]+)\\n/g":
    OWN_MACHINE,
  "src/daemon/containers/devcontainers-find.ts: /^-+|-+$/g": ONE_HYPHEN,
  "src/domain/users/device.ts: /\\bVersion\\/(\\d+)[\\d.]* .*\\bSafari\\//": "the text has at most 512 characters",
  "src/domain/users/lifetime.ts: /(\\d+(?:\\.\\d+)?)(d|h|ms|m|s|us|ns)/g": "the text is known to be a duration",
  "src/domain/users/usernames.ts: /^-+|-+$/g": ONE_HYPHEN,
  "src/domain/users/usernames.ts: /-+$/": ONE_HYPHEN,
  "src/llm/demo.ts: /\\s*\\S+/g": "the text ends with another character than a blank",
  "src/provisioners/terraform/command.ts: /(?:^|\\/)(?:terraform|tofu)[^/]*$/":
    "the text is a path of the server's machine",
  "src/provisioners/terraform/program.ts: /tofu[^/]*$/": "the text is a path of the server's machine",
  "src/tools/duration.ts: /(\\d+(\\.\\d+)?)(ms|s|m|h)/g": "the text is known to be a duration",
  "src/tools/processes/sed-script.ts: /\\[\\^?\\]?[^\\]]*(\\]|$)/g": "the end of the text ends a match, too",
  "src/web/app/pages/chat/suggest.ts: /(^|\\s)@(\\S*)$/": OWN_MACHINE,
  "src/web/app/pages/template/code-editor.ts: /(^|\\/)(Dockerfile|Containerfile)[^/]*$/": OWN_MACHINE,
  "src/web/app/parts/format-time.ts: /\\B(?=(\\d{3})+$)/g": "the text is a number",
  "src/web/app/parts/search.tsx: /^(.*?)(\\S*)$/": OWN_MACHINE,
  'src/web/app/parts/search.tsx: /^(.*?)([^\\s:"]+):("[^"]+"|[^\\s"]+)\\s$/': OWN_MACHINE,
  "src/web/app/parts/inline/inline.tsx: /\\n\\s*\\n/": "two line breaks end a match",
  'src/web/app/parts/query.ts: /[^\\s"]*"[^"]*"?|[^\\s"]+/g':
    "the second alternative takes a run of letters as a whole",
  "src/web/app/shell/repository-link.ts: /^(?:https?:\\/\\/|ssh:\\/\\/|git@)[^\\s/]+[/:]\\S+$/": OWN_MACHINE,
};
/** A repetition. Files without one are not parsed, because parsing takes seconds. */
const REPETITION = /\/.*[+*}].*\//;

test("[RP-52] no pattern for text from outside takes quadratic time", () => {
  const files = ["src", "actors", "db"].flatMap((folder) =>
    [...new Bun.Glob("**/*.{ts,tsx,mjs}").scanSync({ cwd: `${import.meta.dir}/../../${folder}` })].map(
      (file) => `${folder}/${file}`,
    ),
  );
  const found = files.sort().flatMap((file) => {
    const text = readPage(file);
    if (BUILD_FILES.test(file) || !REPETITION.test(text)) return [];
    const slow = listPatterns(file, text).filter(isSlow);
    return slow.map(({ source, flags }) => `${file}: /${source}/${flags}`);
  });
  expect(found.filter((pattern) => !Object.hasOwn(HARMLESS, pattern))).toEqual([]);
  expect(Object.keys(HARMLESS).filter((pattern) => !found.includes(pattern))).toEqual([]);
});

test("[RP-52] the check finds patterns that one character or a repeated beginning slows down", () => {
  const check = (pattern: RegExp): boolean => isSlow(pattern);
  expect(
    [/-+$/, /\s*\n\s*/, /<!--[\s\S]*?-->/, /(https?:\/\/[^\s?#]+)[?#]/g, /^\[[^\]]*,[^\]]*\]$/].map(check),
  ).toEqual(Array(5).fill(true));
  expect([/^-+/, /\n/, /https?:\/\/[^\s]+/g, /^[^/]*\/[\s\S]*$/, /\[[^[\]]*\]/].map(check)).toEqual(
    Array(5).fill(false),
  );
});
