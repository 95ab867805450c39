// `slipway users roles USER [--set|--add|--remove ROLE,…]`: shows or changes site roles.
import { usageError } from "#base/usage-error.ts";
import { readArguments } from "../../arguments.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { listed } from "./create.ts";
import { formatRoles, userAsked, userPath } from "./find.ts";

const WAYS = ["set", "add", "remove"] as const;

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: WAYS });
  const [way, more] = WAYS.filter((one) => value[one] !== undefined);
  if (more !== undefined) throw usageError(`--${more}`, `not with --${way}`);
  const named = userAsked(input, words);
  return withServer("users roles", input, value, async ({ client }) => {
    let user = await named(client);
    if (way !== undefined) {
      const roles = changed(
        user.roles.map(({ name }) => name),
        way,
        listed(value[way] ?? ""),
      );
      user = await client.put(`${userPath(user.id)}/roles`, { roles });
    }
    input.print(has.json ? JSON.stringify(user) : `${user.username}: ${formatRoles(user)}`);
    return EXIT.ok;
  });
};

/** `none` stands for an empty set, so that all roles can be removed. */
const changed = (has: readonly string[], way: (typeof WAYS)[number], given: readonly string[]): string[] => {
  if (way === "set") return given.filter((role) => role !== "none");
  if (way === "add") return [...new Set([...has, ...given])];
  return has.filter((role) => !given.includes(role));
};
