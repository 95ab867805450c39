// Invitation links: created, sent by email if SMTP is configured, and renewed. Only a hash is stored (rule IV-2).
import { linkToken, sha256, uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { runOutsideRequest } from "#base/network/current-request.ts";
import { type InvitationRow, updateInvitation } from "#db/users/invitations.ts";
import type { DomainContext } from "../context.ts";

export const INVITATION_TTL_MS = 7 * 86_400_000;

export type NewLink = { readonly token: string; readonly token_hash: string };

export const createLink = (): NewLink => {
  const token = linkToken();
  return { token, token_hash: sha256(token) };
};

/** The token is in the fragment, so that it does not appear in logs of servers or proxies. */
export const toLink = ({ accessUrl }: Pick<DomainContext, "accessUrl">, token: string): string =>
  new URL(`/invite#${token}`, accessUrl).href;

export type Outgoing = { readonly row: InvitationRow; readonly token: string; readonly inviter: string };

const formatText = (ctx: DomainContext, { row, token, inviter }: Outgoing): string =>
  [
    `${row.name === "" ? "Hello" : `Hello ${row.name}`},`,
    `${inviter} invited you to ${ctx.accessUrl.host}. Open this link to create your account:`,
    toLink(ctx, token),
    "The link works once, for 7 days. If you did not expect this invitation, ignore this message.",
  ].join("\n\n");

/** Sends the messages one after the other and records whether each was sent. Returns immediately; never rejects. */
export const sendLinks = (ctx: DomainContext, outgoing: readonly Outgoing[]): void => {
  const sendAll = async (): Promise<void> => {
    for (const one of outgoing) await sendLink(ctx, one);
  };
  void runOutsideRequest(sendAll).catch((error) => log("http").warn("invitations were not sent: {error}", { error }));
};

const sendLink = async (ctx: DomainContext, one: Outgoing): Promise<void> => {
  const { id, email: to } = one.row;
  const mail = {
    to,
    subject: `${one.inviter} invited you to ${ctx.accessUrl.host}`,
    text: formatText(ctx, one),
    id: uuid(),
  };
  const outcome = await ctx.mailer.send(mail).then(
    () => ({ sent_at: ctx.clock.now(), send_problem: "" }),
    (error: unknown) => {
      log("http").warn("an invitation was not sent: {error}", { error });
      return { sent_at: null, send_problem: "The email server did not accept the message." };
    },
  );
  // The invitation was revoked in the meantime, so there is nothing to record.
  await ctx.store.commit([updateInvitation(id, outcome)]);
};
