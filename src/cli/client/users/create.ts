// `slipway users create NAME --email EMAIL`: creates a user with a password, or without one for external sign-in and for programs.
import { usageError } from "#base/usage-error.ts";
import type { CreateUser, User } from "#schema/users/user.ts";
import type { Client } from "#src/client.ts";
import { type Arguments, readArguments } from "../../arguments.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { readPassword } from "../../password.ts";
import type { RunVerb, VerbInput } from "../../verb.ts";
import { withServer } from "../remote.ts";

const SHAPE = {
  values: ["email", "name", "roles", "password-file", "login-type"],
  lists: ["organization"],
  switches: ["service-account"],
} as const;
type CreateArguments = Arguments<(typeof SHAPE.values)[number], "organization", "service-account">;

export const run: RunVerb = async (input) => {
  const args = readArguments(input.argv, SHAPE);
  const word = takeOneWord(input, args.words, "the new user's name");
  const { login_type, hasPassword } = toSignIn(args);
  const isProgram = args.has["service-account"];
  const { email: address, name, roles } = args.value;
  if (!isProgram) takeOneWord(input, address === undefined ? [] : [address], "--email EMAIL");
  const secret = hasPassword ? readPassword(args.value["password-file"], input) : undefined;
  return withServer("users create", input, args.value, async ({ client }) => {
    const username = await promptIfMissing(input, word, "Name of the new user");
    const email = isProgram ? undefined : await promptIfMissing(input, address, "Email");
    const organization_ids = await loadOrganizationIds(client, args.list.organization);
    const user = await client.post("/api/v2/users", {
      username,
      ...(email === undefined ? {} : { email }),
      ...(name === undefined ? {} : { name }),
      ...(isProgram ? { service_account: true } : { login_type }),
      ...(secret ? { password: secret.password } : {}),
      ...(roles === undefined ? {} : { roles: splitList(roles) }),
      ...(organization_ids.length > 0 ? { organization_ids } : {}),
    } satisfies CreateUser);
    printCreated(input, user, secret?.isGenerated ? secret.password : undefined, args.has.json);
  });
};

/** Returns the sign-in method. Throws UsageError if a password is given for a user without one. */
const toSignIn = ({
  value,
  has,
}: CreateArguments): { login_type: "password" | "oidc" | "none"; hasPassword: boolean } => {
  const type = value["login-type"] ?? (has["service-account"] ? "none" : "password");
  if (type !== "password" && type !== "oidc" && type !== "none") {
    throw usageError("--login-type", "expected password, oidc or none");
  }
  if (has["service-account"] && value.email !== undefined) throw usageError("--email", "a service account has none");
  if (has["service-account"] && type !== "none") throw usageError("--login-type", "a service account does not sign in");
  const hasPassword = type === "password";
  if (!hasPassword && value["password-file"] !== undefined) {
    throw usageError("--password-file", "only for users who sign in with a password");
  }
  return { login_type: type, hasPassword };
};

/** Prints the user. A generated password is included, because it can't be shown again. */
const printCreated = ({ print }: VerbInput, user: User, password: string | undefined, json: boolean): void => {
  if (json) print(JSON.stringify(password === undefined ? user : { ...user, password }));
  else print(password === undefined ? `Created ${user.username}.` : `Created ${user.username}. Password: ${password}`);
};

const loadOrganizationIds = async (client: Client, names: readonly string[]): Promise<string[]> => {
  const found = names.map((name) =>
    client.get(`/api/v2/organizations/${encodeURIComponent(name)}`).then(({ id }) => id),
  );
  return Promise.all(found);
};

/** Splits a comma-separated list of names. */
export const splitList = (text: string): string[] =>
  text
    .split(",")
    .map((one) => one.trim())
    .filter(Boolean);
