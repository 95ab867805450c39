// What the nodes of a cluster tell each other through the database, as the text of a NOTIFY. It comes with the commit that it is part of, in the
// order of commits. Pure.
import type { Statement } from "../../engine/sql.ts";
import type { Sent } from "../bind.ts";

/** An event that is to be heard on every node, as it is published on this one. */
export type Word = { readonly kind: string; readonly id: string; readonly event: object };

/** `all`: there was more to tell than a notice holds, so whatever depends on what is told has to be looked at. */
export type Notice = {
  readonly epoch: number;
  /** How many this node has told by now, with this one. */
  readonly n?: number;
  /** Parts have moved, or a node has come or gone: no part of what is counted. */
  readonly moves?: true;
  readonly audit?: true;
  readonly words?: readonly Word[];
  readonly all?: true;
};

export const CHANNEL = "slipway";
/** PostgreSQL takes fewer than 8,000. */
const MAX_NOTICE_BYTES = 7_999;

/** The text of a notice; "everything" where it would be too long. */
export const noticeText = (notice: Notice): string => {
  const text = JSON.stringify(notice);
  const { epoch, n } = notice;
  return Buffer.byteLength(text) <= MAX_NOTICE_BYTES ? text : JSON.stringify({ epoch, n, all: true });
};

/** The notice of a text; "everything" where it cannot be read, such as one of a later version. */
export const readNotice = (text: string): Notice => {
  try {
    const notice = JSON.parse(text) as Notice;
    if (Number.isSafeInteger(notice.epoch)) return notice;
  } catch {
    // Answered below.
  }
  return { epoch: 0, all: true };
};

/** What a group of batches says to the other nodes alongside its words; undefined: nothing. */
export const makeNotice = (
  epoch: number,
  batches: readonly (readonly Statement[])[],
  words: readonly Word[],
): Notice | undefined => {
  const isAudited = batches.some((batch) => batch.some(({ touches }) => touches?.includes("audit")));
  if (!isAudited && words.length === 0) return undefined;
  return { epoch, ...(isAudited && { audit: true }), ...(words.length > 0 && { words }) };
};

/** Words that wait for a group: beyond them a notice says everything. */
export const MAX_NOTIFICATIONS = 500;

/** The same in so many pieces as it takes, numbered behind `told`; "everything" where there are more words than are kept. */
export const sentNotices = (notice: Notice, told: number): Sent[] => {
  const { epoch, words = [], ...rest } = notice;
  const n = told + 1;
  if (words.length >= MAX_NOTIFICATIONS) return [sentNotice({ epoch, n, all: true })];
  const whole = { epoch, n, ...rest, ...(words.length > 0 && { words }) };
  if (words.length < 2 || Buffer.byteLength(JSON.stringify(whole)) <= MAX_NOTICE_BYTES) return [sentNotice(whole)];
  const half = words.length >> 1;
  const first = sentNotices({ epoch, ...rest, words: words.slice(0, half) }, told);
  return [...first, ...sentNotices({ epoch, words: words.slice(half) }, told + first.length)];
};

/** Says that parts have moved, or who lives. */
export const sentMoves = (epoch: number): Sent => sentNotice({ epoch, moves: true });

const sentNotice = (notice: Notice): Sent => ({
  text: "select pg_notify($1, $2)",
  params: [CHANNEL, noticeText(notice)],
});
