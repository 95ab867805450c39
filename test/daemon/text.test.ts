import { describe, expect, test } from "bun:test";
import { resolveFolder, resolvePlace } from "#src/daemon/environment.ts";
import { LineSplitter, MAX_LINE } from "#src/daemon/scripts/lines.ts";

const split = (...chunks: (string | Uint8Array)[]): string[] => {
  const splitter = new LineSplitter();
  const lines = chunks.flatMap((chunk) => splitter.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk));
  return [...lines, ...splitter.end()];
};

describe("output as lines", () => {
  test("[DM-7] a line is complete before it is sent, however it is split", () => {
    expect(split("a", "b\nc", "\r\n\n", "end")).toEqual(["ab", "c", "", "end"]);
    expect(split("a\n")).toEqual(["a"]);
    expect(split()).toEqual([]);
    const text = Buffer.from("käse 🧀\nbrot");
    for (let cut = 1; cut < text.length; cut++) {
      expect(split(text.subarray(0, cut), text.subarray(cut))).toEqual(["käse 🧀", "brot"]);
    }
  });

  test("[DM-7] a line beyond the limit continues as the next one, and no character is broken", () => {
    const long = "x".repeat(MAX_LINE - 1);
    expect(split(`${long}🧀rest\nnext`)).toEqual([long, "🧀rest", "next"]);
    expect(split("y".repeat(2 * MAX_LINE + 5)).map((line) => line.length)).toEqual([MAX_LINE, MAX_LINE, 5]);
    const pieces = Array.from({ length: 50 }, () => "z".repeat(1024));
    expect(split(...pieces).join("")).toBe("z".repeat(50 * 1024));
  });

  test("[DM-7] invalid UTF-8 is replaced", () => {
    expect(split(Uint8Array.of(0x61, 0xff, 0x62, 0x0a, 0xc3))).toEqual(["a\ufffdb", "\ufffd"]);
  });
});

describe("places", () => {
  test("[DM-6] the home folder, variables and relative paths are filled in", () => {
    const env = { HOME: "/home/ada", SUB: "x" };
    expect(["", "~", "~/p", "$HOME/p", "p/$SUB", "/abs/$NONE"].map((text) => resolveFolder(text, env))).toEqual([
      "/home/ada",
      "/home/ada",
      "/home/ada/p",
      "/home/ada/p",
      "/home/ada/p/x",
      "/abs/$NONE",
    ]);
    expect(resolvePlace("logs/a.log", env, "/srv/code")).toBe("/srv/code/logs/a.log");
  });
});
