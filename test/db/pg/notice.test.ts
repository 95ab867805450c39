// The notices between nodes, as the text of a NOTIFY.
import { describe, expect, test } from "bun:test";
import { MAX_NOTIFICATIONS, makeNotice, noticeText, readNotice, sentNotices, type Word } from "#db/pg/told/notice.ts";

const word = (id: string): Word => ({ kind: "key_gone", id, event: {} });
const audited = { sql: "insert", rows: [[1]], touches: ["audit"] as const };
const other = { sql: "insert", rows: [[1]], touches: ["agents", "lines"] as const };

describe("a notice", () => {
  test("[PQ-12] contains a group's notifications, and is omitted if there are none", () => {
    expect(makeNotice(7, [[other], [other]], [])).toBeUndefined();
    expect(makeNotice(7, [[other], [other, audited]], [])).toEqual({ epoch: 7, audit: true });
    expect(makeNotice(7, [], [word("a")])).toEqual({ epoch: 7, words: [word("a")] });
  });

  test("[PQ-12] is read as written", () => {
    const notice = { epoch: 7, audit: true as const, words: [word("ä"), { ...word("b"), event: { except: "c" } }] };
    expect(readNotice(noticeText(notice))).toEqual(notice);
  });

  test("[PQ-12] says everything if it would exceed the database's limit, or cannot be read", () => {
    const most = (count: number, id = "x") => ({ epoch: 7, words: Array.from({ length: count }, () => word(id)) });
    expect(readNotice(noticeText(most(100)))).toEqual(most(100));
    expect(readNotice(noticeText(most(500)))).toEqual({ epoch: 7, all: true });
    // The limit is in bytes, not characters.
    expect(readNotice(noticeText(most(100, "ä".repeat(30))))).toEqual({ epoch: 7, all: true });
    // In several notices, where possible.
    const told = (count: number) => sentNotices(most(count), 4).map(({ params }) => readNotice(String(params[1])));
    expect(told(1)).toEqual([{ ...most(1), n: 5 }]);
    expect(told(400).flatMap(({ words = [] }) => words)).toEqual(most(400).words);
    expect(told(400).map(({ n }) => n)).toEqual(told(400).map((_, i) => 5 + i));
    expect(told(MAX_NOTIFICATIONS)).toEqual([{ epoch: 7, n: 5, all: true }]);
    for (const text of ["", "{}", "[1]", '{"epoch":"7"}']) expect(readNotice(text).all).toBe(true);
  });
});
