// The tools that read and change files of a real workspace: their results and errors.
import { expect, test } from "bun:test";
import { chmodSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import { until } from "#test/support/until.ts";
import { callTools, openChat, openToolWorld } from "./world.ts";

test("[TO-9] read_file returns numbered lines from the requested one, within its limits, and explains unreadable files", async () => {
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
});

test("[TO-9] [TO-10] read_file reports the type and size of binary files, edit_files refuses them, and other encodings stay intact", async () => {
  await using world = await openToolWorld();
  const { call } = await openChat(world);
  const toHomePath = (name: string): string => join(world.home, name);
  const png = Buffer.concat([Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"), Buffer.alloc(121_000, 0xd7)]);
  await Bun.write(toHomePath("photo.txt"), png);
  await Bun.write(toHomePath("paper.md"), "%PDF-1.7\nno byte of it is zero\n");
  await Bun.write(toHomePath("program"), Buffer.concat([Buffer.from("\u007fELF"), Buffer.alloc(40_000_000)]));
  await Bun.write(toHomePath("old.txt"), Buffer.from("caf\u00e9\n", "latin1"));
  await Bun.write(toHomePath("marked.txt"), "\ufeffone\n");
  const makeEdit = (path: string, old_text: string) =>
    ["edit_files", { files: [{ path, edits: [{ old_text, new_text: "x" }] }] }] as const;
  const { results } = await callTools(
    world,
    call,
    ["read_file", { path: "photo.txt" }],
    ["read_file", { path: "paper.md", offset: 2 }],
    ["read_file", { path: "program" }],
    ["read_file", { path: "old.txt" }],
    ["read_file", { path: "marked.txt" }],
    makeEdit("photo.txt", "PNG"),
    makeEdit("old.txt", "caf"),
    makeEdit("marked.txt", "one"),
  );
  expect(results[0]?.error).toContain("image/png (121016 bytes)");
  expect(results[0]?.error).toContain("attach_file");
  expect(results[0]).not.toHaveProperty("content");
  expect(results[1]?.error).toContain("application/pdf (31 bytes)");
  expect(results[2]?.error).toContain("application/octet-stream (40000004 bytes)");
  expect(results[2]?.error).not.toContain("attach_file");
  expect(results[3]).toMatchObject({ content: expect.stringContaining("caf"), lines_read: 1 });
  expect(results[4]).toMatchObject({ content: "1\tone" });
  expect(results[5]?.error).toContain("image/png");
  expect(results[6]?.error).toContain("not in UTF-8");
  expect(readFileSync(toHomePath("photo.txt")).equals(png)).toBe(true);
  expect(readFileSync(toHomePath("old.txt"), "latin1")).toBe("caf\u00e9\n");
  expect(readFileSync(toHomePath("marked.txt"), "utf8")).toBe("\ufeffx\n");
});

test("[TO-10] write_file replaces the file; edit_files replaces passages despite differences in whitespace, and returns a diff", async () => {
  await using world = await openToolWorld();
  const { call } = await openChat(world);
  const toHomePath = (name: string): string => join(world.home, name);
  await Bun.write(toHomePath("tool.sh"), "echo old\n");
  chmodSync(toHomePath("tool.sh"), 0o755);
  await Bun.write(toHomePath("a.ts"), "function a() {\n    if (b) {\n        c();  \n    }\n}\n");
  await Bun.write(toHomePath("win.txt"), "one\r\ntwo\r\nthree\r\n");
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
  expect(readFileSync(toHomePath("deep/er/new.txt"), "utf8")).toBe("häl\n");
  expect(statSync(toHomePath("tool.sh")).mode & 0o777).toBe(0o755);
  expect(readFileSync(toHomePath("a.ts"), "utf8")).toBe("function a() {\n    if (d) {\n        e();\n    }\n}\n");
  expect(readFileSync(toHomePath("win.txt"), "utf8")).toBe("1\r\n2\r\nthree\r\n");
  const hunk =
    "@@ -1,5 +1,5 @@\n function a() {\n-    if (b) {\n-        c();  \n+    if (d) {\n+        e();\n     }\n }\n";
  expect(first.results[2]).toMatchObject({
    ok: true,
    files: [{ path: "a.ts", diff: `--- a.ts\n+++ a.ts\n${hunk}` }, {}],
  });
});

test("[TO-11] validates all edits before any file changes, and names the invalid ones", async () => {
  await using world = await openToolWorld();
  const { call } = await openChat(world);
  const toHomePath = (name: string): string => join(world.home, name);
  await Bun.write(toHomePath("a.txt"), "one\ntwo\ntwo\n");
  const validEdit = { path: "a.txt", edits: [{ old_text: "one", new_text: "1" }] };
  const makeEdit = (path: string, old_text: string, options = {}) => ({
    path,
    edits: [{ old_text, new_text: "x", ...options }],
  });
  const { results, next } = await callTools(
    world,
    call,
    ["edit_files", { files: [validEdit, makeEdit("a.txt", "three")] }],
    ["edit_files", { files: [validEdit, makeEdit("a.txt", "two")] }],
    ["edit_files", { files: [validEdit, makeEdit("b.txt", "two")] }],
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
  expect(readFileSync(toHomePath("a.txt"), "utf8")).toBe("one\ntwo\ntwo\n");
  await callTools(world, next, ["edit_files", { files: [makeEdit("a.txt", "two", { replace_all: true })] }]);
  expect(readFileSync(toHomePath("a.txt"), "utf8")).toBe("one\nx\nx\n");
});

test("[TO-18] attach_file stores a workspace file with the chat, within its limits; a chat keeps its newest fifty files", async () => {
  await using world = await openToolWorld();
  const { id, call } = await openChat(world);
  const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
  await Bun.write(join(world.home, "chart.bin"), png);
  await Bun.write(join(world.home, "notes.md"), "# Notes\n");
  await Bun.write(join(world.home, "page.svg"), "<svg xmlns='http://www.w3.org/2000/svg'></svg>");
  await Bun.write(join(world.home, "empty"), "");
  await Bun.write(join(world.home, "big.txt"), "x".repeat(10_485_761));
  const { results, next } = await callTools(
    world,
    call,
    ["attach_file", { path: "chart.bin", name: "sub/chart\u202e.png" }],
    ["attach_file", { path: "notes.md" }],
    ["attach_file", { path: "page.svg" }],
    ["attach_file", { path: "empty" }],
    ["attach_file", { path: "big.txt" }],
    ["attach_file", { path: "nowhere.png" }],
  );
  expect(results.slice(0, 2)).toMatchObject([
    { ok: true, path: "chart.bin", name: "chart.png", media_type: "image/png", size: png.byteLength },
    { ok: true, name: "notes.md", media_type: "text/markdown", size: 8 },
  ]);
  expect(results.slice(2).map(({ error }) => error)).toEqual([
    expect.stringContaining("SVG cannot"),
    expect.stringContaining("is empty"),
    expect.stringContaining("larger than 10485760 bytes"),
    expect.stringContaining("no such file"),
  ]);
  const file = await world.owner.fetch("GET", `/api/v2/chats/files/${results[0]?.file_id}`);
  expect([file.headers.get("content-type"), Buffer.from(await file.arrayBuffer())]).toEqual(["image/png", png]);
  const listFileNames = async () => (await world.owner.get<Chat>(`/api/v2/chats/${id}`)).files.map(({ name }) => name);
  expect((await listFileNames()).sort()).toEqual(["chart.png", "notes.md"]);
  const attachCalls = Array.from(
    { length: 50 },
    (_, index) => ["attach_file", { path: "notes.md", name: `${index}.md` }] as const,
  );
  await callTools(world, next, ...attachCalls);
  const fileNames = await listFileNames();
  expect([fileNames.length, fileNames.includes("chart.png"), fileNames.includes("49.md")]).toEqual([50, false, true]);
});

test("[TO-32] runs eight of a response's calls at a time; their results share one size limit, and calls beyond it do not run", async () => {
  await using world = await openToolWorld();
  const permissions = { default: "allow", rules: [{ tool: "edit_files", action: "deny" }] };
  const { call } = await openChat(world, { permissions });
  const toHomePath = (name: string): string => join(world.home, name);
  await Bun.write(toHomePath("wide.txt"), `${"x".repeat(90_000)}\n`);
  const waitForGate = (index: number) => [
    "execute",
    { command: `touch began-${index}; until [ -e gate ]; do sleep 0.05; done` },
  ];
  const waitingCalls = Array.from({ length: 12 }, (_, index) => waitForGate(index) as [string, object]);
  const allResults = callTools(world, call, ...waitingCalls);
  const listStarted = (): string[] => readdirSync(world.home).filter((name) => name.startsWith("began-"));
  await until(() => listStarted().length >= 8);
  expect(listStarted()).toHaveLength(8);
  await Bun.write(toHomePath("gate"), "");
  const { next, parts } = await allResults;
  expect([parts.map(({ is_error }) => is_error), listStarted().length]).toEqual([waitingCalls.map(() => false), 12]);
  const reads = Array.from({ length: 40 }, () => ["read_file", { path: "wide.txt" }] as [string, object]);
  const readResults = await callTools(world, next, ...reads, ["edit_files", {}]);
  const resultSizes = readResults.results.map((result) => JSON.stringify(result).length);
  expect(resultSizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(600_000);
  expect(resultSizes.filter((size) => size > 60_000)).toHaveLength(8);
  // The decision of a rule takes precedence over the size limit.
  expect(readResults.results.at(-1)?.error).toStartWith("The rules of this chat do not allow this call.");
  expect(readResults.results.at(-2)?.error).toStartWith(
    "Not run: the results of this answer's other calls already take up",
  );
  expect(readResults.results.filter(({ truncated }) => truncated).length).toBeLessThan(17);
});
