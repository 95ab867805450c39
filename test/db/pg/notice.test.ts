// The notices between nodes, as the text of a NOTIFY.
import { describe, expect, test } from "bun:test";
import {
  type BroadcastEvent,
  formatNotice,
  MAX_NOTIFICATIONS,
  makeNotice,
  readNotice,
  toNotifications,
} from "#db/pg/notices/notice.ts";

const makeEvent = (id: string): BroadcastEvent => ({ kind: "key_gone", id, event: {} });
const audited = { sql: "insert", rows: [[1]], touches: ["audit"] as const };
const otherStatement = { sql: "insert", rows: [[1]], touches: ["agents", "lines"] as const };

describe("a notice", () => {
  test("[PQ-12] contains a group's notifications, and is omitted for a group without any", () => {
    expect(makeNotice(7, [[otherStatement], [otherStatement]], [])).toBeUndefined();
    expect(makeNotice(7, [[otherStatement], [otherStatement, audited]], [])).toEqual({ epoch: 7, audit: true });
    expect(makeNotice(7, [], [makeEvent("a")])).toEqual({ epoch: 7, words: [makeEvent("a")] });
  });

  test("[PQ-12] is parsed as it was written", () => {
    const notice = {
      epoch: 7,
      audit: true as const,
      words: [makeEvent("ä"), { ...makeEvent("b"), event: { except: "c" } }],
    };
    expect(readNotice(formatNotice(notice))).toEqual(notice);
  });

  test('[PQ-12] is the notice "everything" if it would exceed the database\'s limit, or cannot be parsed', () => {
    const makeNoticeWith = (count: number, id = "x") => ({
      epoch: 7,
      words: Array.from({ length: count }, () => makeEvent(id)),
    });
    expect(readNotice(formatNotice(makeNoticeWith(100)))).toEqual(makeNoticeWith(100));
    expect(readNotice(formatNotice(makeNoticeWith(500)))).toEqual({ epoch: 7, all: true });
    // The limit is in bytes, not characters.
    expect(readNotice(formatNotice(makeNoticeWith(100, "ä".repeat(30))))).toEqual({ epoch: 7, all: true });
    // Events are split into several notices if possible.
    const sendAndRead = (count: number) =>
      toNotifications(makeNoticeWith(count), 4).map(({ params }) => readNotice(String(params[1])));
    expect(sendAndRead(1)).toEqual([{ ...makeNoticeWith(1), n: 5 }]);
    expect(sendAndRead(400).flatMap(({ words = [] }) => words)).toEqual(makeNoticeWith(400).words);
    expect(sendAndRead(400).map(({ n }) => n)).toEqual(sendAndRead(400).map((_, i) => 5 + i));
    expect(sendAndRead(MAX_NOTIFICATIONS)).toEqual([{ epoch: 7, n: 5, all: true }]);
    for (const text of ["", "{}", "[1]", '{"epoch":"7"}']) expect(readNotice(text).all).toBe(true);
  });
});
