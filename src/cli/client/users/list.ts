// `slipway users list [FILTER…]`: lists the users that the caller can see; filters work as in the search of the API.
import type { User } from "#schema/users/user.ts";
import { readArguments } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import type { RunVerb } from "../../verb.ts";
import { loadAllPages } from "../pages.ts";
import { withServer } from "../remote.ts";
import { toUserRow } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  return withServer("users list", input, value, async ({ client }) => {
    const users = await loadAllPages<User, "users">(client, "/api/v2/users", "users", { q: words.join(" ") });
    const rows = users.map((user) => toUserRow(user, input.clock.now()));
    if (has.json) input.print(JSON.stringify(users));
    else if (rows.length === 0) input.print("No users found.");
    else input.print(formatTable(["USERNAME", "EMAIL", "STATUS", "ROLES", "LAST SEEN"], rows));
  });
};
