// Messages between the nodes of a cluster, sent through the database as NOTIFY payloads. They arrive with the commit that they belong to,
// in the order of commits. Pure.
import type { Statement } from "../../engine/sql.ts";
import type { BoundText } from "../bind.ts";

/** An event for every node, as it is published on this one. */
export type BroadcastEvent = { readonly kind: string; readonly id: string; readonly event: object };

/** `all`: the content exceeded a notice, so receivers must check everything that depends on notices. */
export type Notice = {
  readonly epoch: number;
  /** The number of notices that this node has sent, including this one. */
  readonly n?: number;
  /** Shards have moved, or a node has joined or left. Not counted. */
  readonly moves?: true;
  readonly audit?: true;
  readonly words?: readonly BroadcastEvent[];
  readonly all?: true;
};

export const CHANNEL = "slipway";
/** PostgreSQL's limit is below 8,000. */
const MAX_NOTICE_BYTES = 7_999;

/** Returns the text of a notice, or of the notice "everything" if the text would be too long. */
export const formatNotice = (notice: Notice): string => {
  const text = JSON.stringify(notice);
  const { epoch, n } = notice;
  return Buffer.byteLength(text) <= MAX_NOTICE_BYTES ? text : JSON.stringify({ epoch, n, all: true });
};

/** Parses a notice. Returns the notice "everything" if that fails, for example for a notice of a later version. */
export const readNotice = (text: string): Notice => {
  try {
    const notice = JSON.parse(text) as Notice;
    if (Number.isSafeInteger(notice.epoch)) return notice;
  } catch {
    // Handled below.
  }
  return { epoch: 0, all: true };
};

/** Returns the notice that a group of batches sends to other nodes; undefined if there is nothing to send. */
export const makeNotice = (
  epoch: number,
  batches: readonly (readonly Statement[])[],
  words: readonly BroadcastEvent[],
): Notice | undefined => {
  const isAudited = batches.some((batch) => batch.some(({ touches }) => touches?.includes("audit")));
  if (!isAudited && words.length === 0) return undefined;
  return { epoch, ...(isAudited && { audit: true }), ...(words.length > 0 && { words }) };
};

/** Maximum events that wait for a group. Beyond that, the notice says "everything". */
export const MAX_NOTIFICATIONS = 500;

/** Splits the notice into as many messages as needed, numbered after `sent`. Returns "everything" for too many events. */
export const toNotifications = (notice: Notice, sent: number): BoundText[] => {
  const { epoch, words = [], ...rest } = notice;
  const n = sent + 1;
  if (words.length >= MAX_NOTIFICATIONS) return [toNotification({ epoch, n, all: true })];
  const single = { epoch, n, ...rest, ...(words.length > 0 && { words }) };
  if (words.length < 2 || Buffer.byteLength(JSON.stringify(single)) <= MAX_NOTICE_BYTES)
    return [toNotification(single)];
  const middle = words.length >> 1;
  const first = toNotifications({ epoch, ...rest, words: words.slice(0, middle) }, sent);
  return [...first, ...toNotifications({ epoch, words: words.slice(middle) }, sent + first.length)];
};

/** Announces that shards have moved or the living nodes have changed. */
export const toMovesNotification = (epoch: number): BoundText => toNotification({ epoch, moves: true });

const toNotification = (notice: Notice): BoundText => ({
  text: "select pg_notify($1, $2)",
  params: [CHANNEL, formatNotice(notice)],
});
