// What the nodes of a cluster tell each other through the database, as the text of a NOTIFY. It comes with the commit that it is part of, in the
// order of commits. Pure.
import type { Statement } from "../../engine/sql.ts";
import type { Sent } from "../bind.ts";

/** An event that is to be heard on every node, as it is published on this one. */
export type Word = { readonly kind: string; readonly id: string; readonly event: object };

/** `all`: there was more to tell than a notice holds, so whatever depends on what is told has to be looked at. */
export type Notice = {
  readonly epoch: number;
  readonly audit?: true;
  readonly words?: readonly Word[];
  readonly all?: true;
};

export const CHANNEL = "slipway";
/** PostgreSQL takes fewer than 8,000. */
const MOST_BYTES = 7_999;

/** The text of a notice; "everything" where it would be too long. */
export const noticeText = (notice: Notice): string => {
  const text = JSON.stringify(notice);
  return Buffer.byteLength(text) <= MOST_BYTES ? text : JSON.stringify({ epoch: notice.epoch, all: true });
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

/** What a group of batches says to the other nodes beside its words; undefined: nothing. */
export const noticeOf = (
  epoch: number,
  batches: readonly (readonly Statement[])[],
  words: readonly Word[],
): Notice | undefined => {
  const isAudited = batches.some((batch) => batch.some(({ touches }) => touches?.includes("audit")));
  if (!isAudited && words.length === 0) return undefined;
  return { epoch, ...(isAudited && { audit: true }), ...(words.length > 0 && { words }) };
};

/** Words that wait for a group: beyond them a notice says everything. */
export const MOST_WORDS = 500;

/** The same in so many pieces as it takes; "everything" where there are more words than are kept. */
export const sentNotices = (notice: Notice): Sent[] => {
  const { words = [], ...rest } = notice;
  const isWhole = words.length < 2 || Buffer.byteLength(JSON.stringify(notice)) <= MOST_BYTES;
  if (isWhole || words.length >= MOST_WORDS) {
    return [sentNotice(words.length >= MOST_WORDS ? { epoch: notice.epoch, all: true } : notice)];
  }
  const half = words.length >> 1;
  const { epoch } = notice;
  return [
    ...sentNotices({ ...rest, words: words.slice(0, half) }),
    ...sentNotices({ epoch, words: words.slice(half) }),
  ];
};

export const sentNotice = (notice: Notice): Sent => ({
  text: "select pg_notify($1, $2)",
  params: [CHANNEL, noticeText(notice)],
});
