// `slipway users invite EMAIL...`: invites users, and prints the links that are not sent by email.
import { readPeople } from "#base/people-list.ts";
import { usageError } from "#base/usage-error.ts";
import type { Invited, InviteRequest } from "#schema/users/invitation.ts";
import { MAX_INVITATIONS_PER_REQUEST } from "#schema/users/invitation.ts";
import type { Client } from "#src/client.ts";
import { readArguments } from "../../arguments.ts";
import { formatTable, readOptionFile } from "../../options.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb, VerbInput } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { splitList } from "./create.ts";

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, {
    values: ["file", "organization", "roles", "organization-roles"],
    lists: ["group"],
  });
  const people = parsePeople(input, words, value.file);
  const { roles, "organization-roles": organization_roles, organization } = value;
  if (list.group.length > 0 && organization === undefined) throw usageError("--group", "needs --organization");
  return withServer("users invite", input, value, async ({ client }) => {
    const destination = organization === undefined ? {} : await findDestination(client, organization, list.group);
    const invited: Invited = await client.post("/api/v2/invitations", {
      people,
      ...destination,
      ...(roles === undefined ? {} : { roles: splitList(roles) }),
      ...(organization_roles === undefined ? {} : { organization_roles: splitList(organization_roles) }),
    } satisfies InviteRequest);
    if (has.json) input.print(JSON.stringify(invited));
    else printResult(input, invited);
  });
};

/** Throws UsageError for an invalid address. */
const parsePeople = (input: VerbInput, words: readonly string[], file: string | undefined): InviteRequest["people"] => {
  const texts = [words.join("\n"), ...(file === undefined ? [] : [readOptionFile("--file", file, input)])];
  const lists = texts.map((text) => readPeople(text));
  const people = lists.flatMap((one) => one.people);
  const [invalid] = lists.flatMap(({ unreadable }) => unreadable);
  if (invalid !== undefined)
    throw usageError(file === undefined ? "argument" : "--file", `no email address in "${toPlainLine(invalid)}"`);
  if (people.length === 0) throw usageError("argument", "expected email addresses, or --file FILE");
  if (people.length > MAX_INVITATIONS_PER_REQUEST) {
    throw usageError(
      "argument",
      `expected at most ${MAX_INVITATIONS_PER_REQUEST} addresses at a time, got ${people.length}`,
    );
  }
  return [...people];
};

const findDestination = async (
  client: Client,
  organization: string,
  groups: readonly string[],
): Promise<Pick<InviteRequest, "organization_id" | "group_ids">> => {
  const path = `/api/v2/organizations/${encodeURIComponent(organization)}` as const;
  const { id: organization_id } = await client.get(path);
  const group_ids: string[] = [];
  for (const name of groups) group_ids.push((await client.get(`${path}/groups/${encodeURIComponent(name)}`)).id);
  return { organization_id, ...(group_ids.length > 0 ? { group_ids } : {}) };
};

const printResult = (
  { print, printError }: VerbInput,
  { invitations, skipped, by_email, without_template }: Invited,
): void => {
  const rows = invitations.map(({ invitation, link }) => [toPlainLine(invitation.email), link ?? "sent by email"]);
  if (rows.length > 0) print(formatTable(["EMAIL", by_email ? "LINK" : "LINK (works once, for 7 days)"], rows));
  if (!by_email && rows.length > 0) {
    printError("No email was sent, because no SMTP server is configured (smtp_host). Send each person their link.");
  }
  for (const { email, reason } of skipped) printError(`${toPlainLine(email)} was not invited. ${toPlainLine(reason)}`);
  if (without_template && rows.length > 0) {
    printError(
      "No template is available to members yet. Add one with `slipway templates init` and `slipway templates push`.",
    );
  }
};
