// `slipway users roles USER [--set|--add|--remove ROLE,…]`: shows or changes site roles.
import { usageError } from "#base/usage-error.ts";
import { readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { splitList } from "./create.ts";
import { formatRoles, selectUser, toUserPath } from "./find.ts";

const ROLE_CHANGES = ["set", "add", "remove"] as const;

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ROLE_CHANGES });
  const [change, more] = ROLE_CHANGES.filter((one) => value[one] !== undefined);
  if (more !== undefined) throw usageError(`--${more}`, `not with --${change}`);
  const findUser = selectUser(input, words);
  return withServer("users roles", input, value, async ({ client }) => {
    let user = await findUser(client);
    if (change !== undefined) {
      const roles = changeRoles(
        user.roles.map(({ name }) => name),
        change,
        splitList(value[change] ?? ""),
      );
      user = await client.put(`${toUserPath(user.id)}/roles`, { roles });
    }
    input.print(has.json ? JSON.stringify(user) : `${user.username}: ${formatRoles(user)}`);
  });
};

/** `none` stands for an empty set, so that all roles can be removed. */
const changeRoles = (
  current: readonly string[],
  change: (typeof ROLE_CHANGES)[number],
  given: readonly string[],
): string[] => {
  if (change === "set") return given.filter((role) => role !== "none");
  if (change === "add") return [...new Set([...current, ...given])];
  return current.filter((role) => !given.includes(role));
};
