// Patterns that take quadratic time on hostile text.
import { expect, test } from "bun:test";
import { readPage } from "#test/support/documents.ts";

/** Files in which text before such a pattern is short, or no character follows itself in it. */
const HARMLESS: Readonly<Record<string, string>> = {
  "src/daemon/containers/devcontainers-find.ts": "runs of hyphens have become one hyphen",
  "src/cli/client/templates/push.ts": "runs of hyphens have become one hyphen",
  "src/base/links/repository-address.ts": "runs of hyphens have become one hyphen",
  "src/domain/users/usernames.ts": "runs of hyphens have become one hyphen",
  "src/release/release.ts": "the address comes from the command line of a release",
  "src/release/clients/python.ts": "the code is printed by the program itself",
};
const TRIMMING = /\breplace(?:All)?\(\/(?:[^/\n]*\|)?(?:\[[^\]\n]*\]|\\?[^\]\n])[+*]\$\//;

test("[RP-52] nothing is trimmed with a pattern whose time is quadratic", () => {
  const files = ["src", "actors", "db"].flatMap((folder) =>
    [...new Bun.Glob("**/*.{ts,tsx}").scanSync({ cwd: `${import.meta.dir}/../../${folder}` })].map(
      (file) => `${folder}/${file}`,
    ),
  );
  const found = files.filter((file) => TRIMMING.test(readPage(file)));
  expect(found.filter((file) => !Object.hasOwn(HARMLESS, file))).toEqual([]);
  expect(Object.keys(HARMLESS).filter((file) => !found.includes(file))).toEqual([]);
});
