// Words of `slipway workspaces` that are so common that they stand at the top level, too: the same words, under the names people try first.
import type { SubVerb, Verb } from "../verb.ts";
import { CONNECTION } from "./client.ts";
import { WORKSPACES } from "./workspaces.ts";

const wordNamed = (name: string): SubVerb => {
  const word = WORKSPACES.words?.find((one) => one.name === name);
  if (!word) throw new Error(`slipway workspaces has no word ${name}`);
  return word;
};

const shortcut = (name: string, word = name): Verb => {
  const { usage, help, names, load } = wordNamed(word);
  return { name, area: "workspaces", help, usage, details: CONNECTION, ...(names ? { names } : {}), load };
};

/** Lists running workspaces: `slipway ls status:running`. */
const RUNNING: Verb = {
  ...shortcut("ps", "list"),
  help: "Lists your running workspaces.",
  load: async () => {
    const { run } = await wordNamed("list").load();
    return { run: (input) => run({ ...input, argv: ["status:running", ...input.argv] }) };
  },
};

export const SHORTCUTS: readonly Verb[] = [
  shortcut("ls", "list"),
  RUNNING,
  ...["create", "start", "stop", "restart", "update", "fork"].map((name) => shortcut(name)),
  shortcut("rm", "delete"),
];
