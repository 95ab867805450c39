// Secrets of several lines, and keys that the server gives to workspaces: no tool shows them, however it reads them.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { describeInProcess } from "#test/support/in-process.ts";
import { callTools, Follower, listMessages, openChat, openToolWorld } from "#test/tools/world.ts";

const world = await forFile(openToolWorld());
const LINES = [
  "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW",
  "QyNTUxOQAAACBTk2m3Jq0v8yXlR7c1w5ZbN4hU6dPfGtEoSaKiMjLxVwAAAJgTqRzUE6kc",
  "1AAAAAtzc2gtZWQyNTUxOQ==",
];
const BEGIN = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END = "-----END OPENSSH PRIVATE KEY-----";
const KEY = [BEGIN, ...LINES, END, ""].join("\n");

const expectHidden = (text: string, lines: readonly string[]): void => {
  for (const line of lines) expect(text).not.toContain(line.slice(0, 24));
};

describeInProcess("secrets in files", () => {
  test("[TO-21] no tool shows the lines of a key, whether numbered, prefixed, split, compared or attached", async () => {
    await world.owner.post("/api/v2/users/me/secrets", { name: "deploy", value: KEY });
    await Bun.write(join(world.home, "key"), KEY);
    await Bun.write(join(world.home, "picture.png"), Buffer.concat([PNG, Buffer.from(LINES[0] ?? "")]));
    const { id, call } = await openChat(world);
    using follower = await Follower.open(world.owner, id);
    const edit = { path: "key", edits: [{ old_text: END, new_text: `${END}\n# end` }] };
    const commands = [
      ...["cat -n key", "sed 's/^/> /' key", "grep -v BEGIN key", "head -2 key", "tail -3 key", "sed 's/$/\\r/' key"],
      ...["tr '\\n' ' ' < key", "diff key /dev/null", "head -c 150 key; sleep 0.2; tail -c +151 key"],
    ];
    const { results, next } = await callTools(
      world,
      call,
      ["read_file", { path: "key" }],
      ["edit_files", { files: [edit] }],
      ["attach_file", { path: "key" }],
      ["attach_file", { path: "picture.png" }],
      ...commands.map((command) => ["execute", { command }] as const),
    );
    next.finish("stop");
    expect(results[0]?.content).toBe(`1\t[hidden]\n2\t[hidden]\n3\t[hidden]\n4\t[hidden]\n5\t[hidden]`);
    expect(JSON.stringify(results[1])).toContain("[hidden]");
    expect(readFileSync(join(world.home, "key"), "utf8")).toBe(`${KEY}# end\n`);
    expect(results[2]).toMatchObject({ ok: true, note: "Secrets in the file were replaced by [hidden]." });
    expect(await readFile(world.owner, String(results[2]?.file_id))).toContain("[hidden]");
    expect(results[3]?.error).toContain("contains a secret");
    for (const { output } of results.slice(4)) expect(output).toContain("[hidden]");
    // Values that are not secret remain readable.
    expect(results[4]?.output).toContain(`1\t${BEGIN}`);
    const shown = JSON.stringify([follower.events, await listMessages(world.owner, id), next.request.messages]);
    expectHidden(shown, LINES);
  });

  test("[TO-21] no tool replaces a secret by its placeholder; elsewhere, the placeholder can be written as ordinary text", async () => {
    const secret = "sk-live-4f9a8b7c6d5e";
    await world.owner.post("/api/v2/users/me/secrets", { name: "live", value: secret });
    const config = `const key = "${secret}";\nconst port = 1;\n`;
    await Bun.write(join(world.home, "config.ts"), config);
    const css = "[hidden] { display: none; }\n";
    await Bun.write(join(world.home, "other.css"), "a {}\n");
    const { call } = await openChat(world);
    const edit = (path: string, old_text: string, new_text: string) =>
      ["edit_files", { files: [{ path, edits: [{ old_text, new_text }] }] }] as const;
    const { results, next } = await callTools(
      world,
      call,
      ["write_file", { path: "config.ts", content: config.replace(secret, "[hidden]").replace("1", "2") }],
      edit("config.ts", "const port = 1;", 'const other = "[hidden]";'),
      edit("config.ts", 'const key = "[hidden]";', 'const key = "[hidden]"; // live'),
      edit("config.ts", "const port = 1;", "const port = 2;"),
      ["write_file", { path: "page.css", content: css }],
      edit("other.css", "a {}", "a[hidden] {}"),
    );
    next.finish("stop");
    expect(results.map(({ error }) => error)).toEqual([
      expect.stringContaining("contains a secret that the chat doesn't show"),
      expect.stringContaining("contains a secret that the chat doesn't show"),
      expect.stringContaining("edit the text around it"),
      ...[undefined, undefined, undefined],
    ]);
    expect(readFileSync(join(world.home, "config.ts"), "utf8")).toBe(config.replace("1;", "2;"));
    expect(readFileSync(join(world.home, "page.css"), "utf8")).toBe(css);
    expect(readFileSync(join(world.home, "other.css"), "utf8")).toBe("a[hidden] {}\n");
  });

  test("[TO-21] the SSH keys that the server gives to workspaces are hidden from their first use", async () => {
    const { url, ssh_url } = await world.owner.post<{ url: string; ssh_url: string }>("/api/v2/users/me/deploy-keys", {
      url: "https://github.com/acme/app",
    });
    expect(url).toContain("acme");
    const { id, call } = await openChat(world);
    const requestKey = (query: string): string =>
      `curl -s -H "Service-Session-Token: $(cat "$SLIPWAY_AGENT_TOKEN_FILE")" "\${SLIPWAY_AGENT_URL}api/v2/workspaceagents/me/gitsshkey${query}"`;
    const decode = `bun -e 'console.log(JSON.parse(await Bun.stdin.text()).private_key)'`;
    const remote = `?remote=${encodeURIComponent(ssh_url)}`;
    const { results, next } = await callTools(
      world,
      call,
      ["execute", { command: `${requestKey("")} | tee own.json`, timeout: "60s" }],
      ["execute", { command: `${requestKey(remote)} | tee deploy.json`, timeout: "60s" }],
    );
    const decoded = await callTools(
      world,
      next,
      ["execute", { command: `${decode} < own.json | cat -n`, timeout: "60s" }],
      ["execute", { command: `${decode} < deploy.json | tail -4`, timeout: "60s" }],
    );
    decoded.next.finish("stop");
    for (const { output } of [...results, ...decoded.results]) expect(output).toContain("[hidden]");
    const shown = JSON.stringify([await listMessages(world.owner, id), decoded.next.request.messages]);
    for (const name of ["own.json", "deploy.json"]) {
      const { private_key } = (await Bun.file(join(world.home, name)).json()) as { private_key: string };
      expect(private_key).toStartWith(BEGIN);
      expectHidden(shown, private_key.trim().split("\n").slice(1, -1));
    }
  });
});

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const readFile = async (client: Client, id: string): Promise<string> =>
  (await client.fetch("GET", `/api/v2/chats/files/${id}`)).text();
