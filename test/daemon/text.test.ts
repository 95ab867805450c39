import { describe, expect, test } from "bun:test";
import { expandPath, resolveFolder } from "#src/daemon/environment.ts";
import { LineSplitter, MAX_LINE_CHARS } from "#src/daemon/scripts/lines.ts";

const splitLines = (...chunks: (string | Uint8Array)[]): string[] => {
  const splitter = new LineSplitter();
  const lines = chunks.flatMap((chunk) => splitter.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk));
  return [...lines, ...splitter.end()];
};

describe("output as lines", () => {
  test("[DM-7] joins the pieces of a line before it is sent", () => {
    expect(splitLines("a", "b\nc", "\r\n\n", "end")).toEqual(["ab", "c", "", "end"]);
    expect(splitLines("a\n")).toEqual(["a"]);
    expect(splitLines()).toEqual([]);
    const text = Buffer.from("käse 🧀\nbrot");
    for (let cut = 1; cut < text.length; cut++) {
      expect(splitLines(text.subarray(0, cut), text.subarray(cut))).toEqual(["käse 🧀", "brot"]);
    }
  });

  test("[DM-7] continues an overlong line in the next one, without breaking a character", () => {
    const long = "x".repeat(MAX_LINE_CHARS - 1);
    expect(splitLines(`${long}🧀rest\nnext`)).toEqual([long, "🧀rest", "next"]);
    expect(splitLines("y".repeat(2 * MAX_LINE_CHARS + 5)).map((line) => line.length)).toEqual([
      MAX_LINE_CHARS,
      MAX_LINE_CHARS,
      5,
    ]);
    const pieces = Array.from({ length: 50 }, () => "z".repeat(1024));
    expect(splitLines(...pieces).join("")).toBe("z".repeat(50 * 1024));
  });

  test("[DM-7] invalid UTF-8 is replaced", () => {
    expect(splitLines(Uint8Array.of(0x61, 0xff, 0x62, 0x0a, 0xc3))).toEqual(["a\ufffdb", "\ufffd"]);
  });
});

describe("paths", () => {
  test("[DM-6] expands the home folder, variables and relative paths", () => {
    const env = { HOME: "/home/ada", SUB: "x" };
    expect(["", "~", "~/p", "$HOME/p", "p/$SUB", "/abs/$NONE"].map((text) => resolveFolder(text, env))).toEqual([
      "/home/ada",
      "/home/ada",
      "/home/ada/p",
      "/home/ada/p",
      "/home/ada/p/x",
      "/abs/$NONE",
    ]);
    expect(expandPath("logs/a.log", env, "/srv/code")).toBe("/srv/code/logs/a.log");
  });
});
