// `slipway users show USER`: one user.
import type { Organization } from "#schema/users/organization.ts";
import type { User } from "#schema/users/user.ts";
import { readArguments } from "../../arguments.ts";
import { formatFields } from "../../options.ts";
import { formatRelative } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { formatRoles, selectUser, toUserPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const findUser = selectUser(input, words);
  return withServer("users show", input, value, async ({ client }) => {
    const user = await findUser(client);
    const organizations = await client.get(`${toUserPath(user.id)}/organizations`);
    if (has.json) input.print(JSON.stringify(user));
    else input.print(describeUser(user, organizations, input.clock.now()));
  });
};

const describeUser = (user: User, organizations: readonly Organization[], now: number): string =>
  formatFields([
    ["User", user.username],
    ["Name", user.name || undefined],
    ["Email", user.email || undefined],
    ["Status", user.is_service_account ? `${user.status}, service account` : user.status],
    ["Sign-in", user.login_type],
    ["Roles", formatRoles(user)],
    ["Organizations", organizations.map(({ name }) => name).join(", ") || undefined],
    ["Created", formatRelative(user.created_at, now)],
    ["Last seen", user.last_seen_at === undefined ? "never" : formatRelative(user.last_seen_at, now)],
  ]);
