// `slipway users invitations`, `resend EMAIL` and `revoke EMAIL`: lists, resends and revokes pending invitations.
import { toEmailKey } from "#base/email-address.ts";
import type { Invitation } from "#schema/users/invitation.ts";
import type { Client } from "#src/client.ts";
import { readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { formatTable } from "../../options.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

const EXPECTED = "the invited email address";

const formatDelivery = ({ expired, sent_at, send_problem }: Invitation): string =>
  expired ? "expired" : send_problem !== "" ? "not sent" : sent_at === undefined ? "link" : "sent";

export const list: RunVerb = async (input) => {
  const { value, has } = readArguments(input.argv);
  return withServer("users invitations", input, value, async ({ client }) => {
    const { invitations } = await client.get("/api/v2/invitations");
    const rows = invitations.map((one) => [
      toPlainLine(one.email),
      toPlainLine(one.organization_name),
      toPlainLine([...one.roles, ...one.organization_roles].join(",")) || "-",
      toPlainLine(one.invited_by),
      formatDelivery(one),
      one.expires_at.slice(0, 10),
    ]);
    if (has.json) input.print(JSON.stringify(invitations));
    else if (rows.length === 0) input.print("No pending invitations.");
    else input.print(formatTable(["EMAIL", "ORGANIZATION", "ROLES", "INVITED BY", "STATE", "EXPIRES"], rows));
  });
};

/** Rejects with VerbFailure if the address has no invitation. */
const getInvitation = async (client: Client, email: string): Promise<Invitation> => {
  const { invitations } = await client.get("/api/v2/invitations");
  const found = invitations.find((one) => toEmailKey(one.email) === toEmailKey(email) || one.id === email);
  if (!found) throw new VerbFailure(`there is no invitation for ${toPlainLine(email)}`);
  return found;
};

export const resend: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["link"] });
  const word = takeOneWord(input, words, EXPECTED);
  return withServer("users resend", input, value, async ({ client }) => {
    const { id } = await getInvitation(client, await promptIfMissing(input, word, "Email address of the invitation"));
    const created = await client.post(`/api/v2/invitations/${id}/resend`, has.link ? { by: "link" } : {});
    if (has.json) input.print(JSON.stringify(created));
    else input.print(created.link ?? `Sent to ${toPlainLine(created.invitation.email)}.`);
  });
};

export const revoke: RunVerb = async (input) => {
  const { words, value } = readArguments(input.argv);
  const word = takeOneWord(input, words, EXPECTED);
  return withServer("users revoke", input, value, async ({ client }) => {
    const { id, email } = await getInvitation(
      client,
      await promptIfMissing(input, word, "Email address of the invitation"),
    );
    await client.delete(`/api/v2/invitations/${id}`);
    input.print(`The invitation for ${toPlainLine(email)} is revoked.`);
  });
};
