// What nodes tell each other, as the text of a NOTIFY.
import { describe, expect, test } from "bun:test";
import { MAX_NOTIFICATIONS, makeNotice, noticeText, readNotice, sentNotices, type Word } from "#db/pg/told/notice.ts";

const word = (id: string): Word => ({ kind: "key_gone", id, event: {} });
const audited = { sql: "insert", rows: [[1]], touches: ["audit"] as const };
const other = { sql: "insert", rows: [[1]], touches: ["agents", "lines"] as const };

describe("a notice", () => {
  test("[PQ-12] says what a group has to tell, and there is none where that is nothing", () => {
    expect(makeNotice(7, [[other], [other]], [])).toBeUndefined();
    expect(makeNotice(7, [[other], [other, audited]], [])).toEqual({ epoch: 7, audit: true });
    expect(makeNotice(7, [], [word("a")])).toEqual({ epoch: 7, words: [word("a")] });
  });

  test("[PQ-12] is read as it was written", () => {
    const notice = { epoch: 7, audit: true as const, words: [word("ä"), { ...word("b"), event: { except: "c" } }] };
    expect(readNotice(noticeText(notice))).toEqual(notice);
  });

  test("[PQ-12] says everything when it would be longer than the database takes, and when it cannot be read", () => {
    const most = (count: number, id = "x") => ({ epoch: 7, words: Array.from({ length: count }, () => word(id)) });
    expect(readNotice(noticeText(most(100)))).toEqual(most(100));
    expect(readNotice(noticeText(most(500)))).toEqual({ epoch: 7, all: true });
    // Bytes count, not characters.
    expect(readNotice(noticeText(most(100, "ä".repeat(30))))).toEqual({ epoch: 7, all: true });
    // In several, where it can be said so.
    const told = (count: number) => sentNotices(most(count), 4).map(({ params }) => readNotice(String(params[1])));
    expect(told(1)).toEqual([{ ...most(1), n: 5 }]);
    expect(told(400).flatMap(({ words = [] }) => words)).toEqual(most(400).words);
    expect(told(400).map(({ n }) => n)).toEqual(told(400).map((_, i) => 5 + i));
    expect(told(MAX_NOTIFICATIONS)).toEqual([{ epoch: 7, n: 5, all: true }]);
    for (const text of ["", "{}", "[1]", '{"epoch":"7"}']) expect(readNotice(text).all).toBe(true);
  });
});
