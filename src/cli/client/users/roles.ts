// `slipway users roles USER [--set|--add|--remove ROLE,…]`: shows or changes site roles.
import { usageError } from "#base/usage-error.ts";
import { readArguments } from "../../arguments.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { splitList } from "./create.ts";
import { formatRoles, selectUser, toUserPath } from "./find.ts";

const ROLE_CHANGES = ["set", "add", "remove"] as const;

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ROLE_CHANGES });
  const [way, more] = ROLE_CHANGES.filter((one) => value[one] !== undefined);
  if (more !== undefined) throw usageError(`--${more}`, `not with --${way}`);
  const findUser = selectUser(input, words);
  return withServer("users roles", input, value, async ({ client }) => {
    let user = await findUser(client);
    if (way !== undefined) {
      const roles = changeRoles(
        user.roles.map(({ name }) => name),
        way,
        splitList(value[way] ?? ""),
      );
      user = await client.put(`${toUserPath(user.id)}/roles`, { roles });
    }
    input.print(has.json ? JSON.stringify(user) : `${user.username}: ${formatRoles(user)}`);
    return EXIT.ok;
  });
};

/** `none` stands for an empty set, so that all roles can be removed. */
const changeRoles = (
  has: readonly string[],
  way: (typeof ROLE_CHANGES)[number],
  given: readonly string[],
): string[] => {
  if (way === "set") return given.filter((role) => role !== "none");
  if (way === "add") return [...new Set([...has, ...given])];
  return has.filter((role) => !given.includes(role));
};
