// The tools that read and change files of a real workspace: what they answer, and what they refuse.
import { expect, test } from "bun:test";
import { chmodSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { callTools, openChat, openToolWorld } from "./world.ts";

test("[TO-9] read_file answers lines with their numbers, from where it is asked, within its bounds; what cannot be read is said in words", async () => {
  await using world = await openToolWorld();
  const { call } = await openChat(world);
  const lines = Array.from({ length: 5_000 }, (_, index) => `line ${index + 1}`);
  await Bun.write(join(world.home, "long.txt"), `${lines.join("\n")}\n`);
  await Bun.write(join(world.home, "wide.txt"), `${"x".repeat(90_000)}\nsecond\n`);
  await Bun.write(join(world.home, "empty.txt"), "");
  const { results, parts } = await callTools(
    world,
    call,
    ["read_file", { path: "long.txt" }],
    ["read_file", { path: "~/long.txt", offset: 4_999, limit: 10 }],
    ["read_file", { path: "wide.txt" }],
    ["read_file", { path: "empty.txt" }],
    ["read_file", { path: "nothing.txt" }],
    ["read_file", { path: "/dev/zero" }],
  );
  expect(results[0]).toMatchObject({ lines_read: 2_000, total_lines: 5_000, file_size: lines.join("\n").length + 1 });
  expect(results[0]?.content).toStartWith("1\tline 1\n2\tline 2\n");
  expect(results[1]).toMatchObject({ content: "4999\tline 4999\n5000\tline 5000", lines_read: 2 });
  expect(results[2]).toMatchObject({ truncated: true, content: expect.stringContaining("bytes left out") });
  expect(JSON.stringify(results[2]).length).toBeLessThan(65_537);
  expect(results[3]).toMatchObject({ content: "", lines_read: 0, total_lines: 0 });
  expect(results[4]?.error).toContain("no such file");
  expect(results[5]?.error).toContain("not a regular file");
  expect(parts.map(({ is_error }) => is_error)).toEqual([false, false, false, false, true, true]);
}, 30_000);

test("[TO-10] write_file replaces the whole file; edit_files replaces passages, forgives blanks and line endings, and answers a diff", async () => {
  await using world = await openToolWorld();
  const { call } = await openChat(world);
  const at = (name: string): string => join(world.home, name);
  await Bun.write(at("tool.sh"), "echo old\n");
  chmodSync(at("tool.sh"), 0o755);
  await Bun.write(at("a.ts"), "function a() {\n    if (b) {\n        c();  \n    }\n}\n");
  await Bun.write(at("win.txt"), "one\r\ntwo\r\nthree\r\n");
  const first = await callTools(
    world,
    call,
    ["write_file", { path: "deep/er/new.txt", content: "häl\n" }],
    ["write_file", { path: "tool.sh", content: "echo new\n" }],
    [
      "edit_files",
      {
        files: [
          { path: "a.ts", edits: [{ old_text: "if (b) {\n    c();\n}", new_text: "if (d) {\n    e();\n}" }] },
          { path: "win.txt", edits: [{ old_text: "one\ntwo\n", new_text: "1\n2\n" }] },
        ],
      },
    ],
  );
  expect(first.results.slice(0, 2)).toEqual([{ ok: true }, { ok: true }]);
  expect(readFileSync(at("deep/er/new.txt"), "utf8")).toBe("häl\n");
  expect(statSync(at("tool.sh")).mode & 0o777).toBe(0o755);
  expect(readFileSync(at("a.ts"), "utf8")).toBe("function a() {\n    if (d) {\n        e();\n    }\n}\n");
  expect(readFileSync(at("win.txt"), "utf8")).toBe("1\r\n2\r\nthree\r\n");
  const hunk =
    "@@ -1,5 +1,5 @@\n function a() {\n-    if (b) {\n-        c();  \n+    if (d) {\n+        e();\n     }\n }\n";
  expect(first.results[2]).toMatchObject({
    ok: true,
    files: [{ path: "a.ts", diff: `--- a.ts\n+++ a.ts\n${hunk}` }, {}],
  });
}, 30_000);

test("[TO-11] edits are all found valid before any file changes; what does not fit is named", async () => {
  await using world = await openToolWorld();
  const { call } = await openChat(world);
  const at = (name: string): string => join(world.home, name);
  await Bun.write(at("a.txt"), "one\ntwo\ntwo\n");
  const good = { path: "a.txt", edits: [{ old_text: "one", new_text: "1" }] };
  const edit = (path: string, old_text: string, more = {}) => ({ path, edits: [{ old_text, new_text: "x", ...more }] });
  const { results, next } = await callTools(
    world,
    call,
    ["edit_files", { files: [good, edit("a.txt", "three")] }],
    ["edit_files", { files: [good, edit("a.txt", "two")] }],
    ["edit_files", { files: [good, edit("b.txt", "two")] }],
    ["edit_files", { files: [] }],
    ["edit_files", { files: [{ path: "a.txt", edits: [] }] }],
  );
  expect(results.map(({ error }) => error)).toEqual([
    expect.stringContaining("files.1.edits.0.old_text is not in the file"),
    expect.stringContaining("files.1.edits.0.old_text is in the file 2 times"),
    expect.stringContaining("no such file"),
    expect.stringContaining("files: "),
    expect.stringContaining("files.0.edits: "),
  ]);
  expect(readFileSync(at("a.txt"), "utf8")).toBe("one\ntwo\ntwo\n");
  await callTools(world, next, ["edit_files", { files: [edit("a.txt", "two", { replace_all: true })] }]);
  expect(readFileSync(at("a.txt"), "utf8")).toBe("one\nx\nx\n");
}, 30_000);
