// Restoring files when a message is edited: a repository, the folder around it, files without a checkpoint, and obstacles.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Chat, EditedMessage } from "#schema/chats/chat.ts";
import type { ScriptedCall } from "#test/support/models/scripted-models.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { until } from "#test/support/until.ts";
import { callTools, Follower, listMessages, openChat, openToolWorld } from "./world.ts";

const GIT = "git -c user.name=Slip -c user.email=slip@example.com";

testNeeding(
  [needs.git],
  "[UN-1][UN-2][UN-3][UN-4][UN-5][UN-6][UN-8][UN-12] an edit with restore_files restores all files since the message, but keeps commits, indexes and ignored files",
  async () => {
    await using world = await openToolWorld();
    const { owner, home } = world;
    const repository = join(home, "work");
    mkdirSync(repository);
    const sh = (script: string, cwd = repository): string => {
      const { exitCode, stdout, stderr } = Bun.spawnSync(["sh", "-ec", script], {
        cwd,
        env: { ...Bun.env, HOME: home },
      });
      if (exitCode !== 0) throw new Error(stderr.toString());
      return stdout.toString();
    };
    const readText = (name: string) =>
      existsSync(join(home, name)) ? readFileSync(join(home, name), "utf8") : undefined;
    sh(
      `git init -q -b main; echo a > a; echo b > b; echo ignored > .gitignore; mkdir d; echo x > d/x; ${GIT} add .; ${GIT} commit -qm one`,
    );
    sh(
      "echo staged > b; git add b; echo mine >> a; echo new > untracked; echo secret > ignored; chmod 755 d/x; ln -s a link",
    );
    writeFileSync(join(home, "notes"), "by hand\n");
    const before = sh("git status --porcelain; git rev-parse HEAD; ls -l a b d/x | cut -c1-10");

    const chatSettings = { organization_id: world.organization_id, workspace_id: world.seeded.workspace_id };
    const { id } = await owner.post<{ id: string }>("/api/v2/chats", {
      ...chatSettings,
      content: [{ type: "text", text: "one" }],
    });
    using follower = await Follower.open(owner, id);
    const finish = async (call: ScriptedCall): Promise<void> => {
      call.say("done").finish();
      await follower.until(({ status }) => status === "waiting");
    };
    const edit = async (message: number, content: string, options: object = { restore_files: true }) => {
      const body = { content: [{ type: "text", text: content }], ...options };
      const response = await owner.fetch("PATCH", `/api/v2/chats/${id}/messages/${message}`, body);
      return {
        status: response.status,
        body: (await response.json()) as EditedMessage & { message: string; detail: string },
      };
    };
    const changeFiles = `echo agent > a; rm b; echo more > made; rm -r d; echo plain > d; rm link; echo 2 > ignored; echo agent > ../notes; echo new > ../fresh`;
    const first = await callTools(
      world,
      await world.models.next(),
      [
        "execute",
        { command: `${changeFiles}; ${GIT} add -A; ${GIT} commit -qm agent`, workdir: "work", timeout: "60s" },
      ],
      ["write_file", { path: "work/deep/er/file", content: "x" }],
    );
    expect(first.parts).toMatchObject([{ is_error: false }, { is_error: false }]);
    const [message] = await listMessages(owner, id);
    const messageId = message?.id ?? 0;
    const running = await edit(messageId, "too early");
    expect([running.status, running.body.message]).toEqual([409, expect.stringContaining("Interrupt it first")]);
    await finish(first.next);
    const scopes = ["chat:read", "chat:update"];
    const { key } = await owner.post<{ key: string }>("/api/v2/users/me/keys/tokens", { scopes });
    const editBody = { content: [{ type: "text", text: "with a narrow key" }], restore_files: true };
    const withNarrowKey = await owner
      .withToken(key)
      .fetch("PATCH", `/api/v2/chats/${id}/messages/${messageId}`, editBody);
    expect(withNarrowKey.status).toBe(403);

    // A folder that replaced a file stays if it contains ignored files, and the response names it.
    rmSync(join(repository, "a"));
    mkdirSync(join(repository, "a"));
    writeFileSync(join(repository, "a", "ignored"), "not captured");
    const restored = await edit(messageId, "again");
    expect([restored.status, restored.body.warnings]).toEqual([
      200,
      [`Not restored: ${join(repository, "a")} (a folder with files that are not kept is in its place).`],
    ]);
    expect(readText("work/a/ignored")).toBe("not captured");
    rmSync(join(repository, "a"), { recursive: true });
    sh("git show HEAD~1:a > a; echo mine >> a");
    const paths = [
      "work/a",
      "work/b",
      "work/untracked",
      "work/d/x",
      "work/link",
      "work/ignored",
      "work/made",
      "work/deep/er/file",
      "notes",
      "fresh",
    ];
    expect(paths.map(readText)).toEqual([
      "a\nmine\n",
      "staged\n",
      "new\n",
      "x\n",
      "a\nmine\n",
      "2\n",
      undefined,
      undefined,
      "by hand\n",
      undefined,
    ]);
    expect(existsSync(join(repository, "deep"))).toBe(false);
    // The agent's commit stays. Compared with the previous commit, everything is unchanged.
    expect(sh("git log --format=%s")).toBe("agent\none\n");
    expect(
      sh(
        "git reset -q --soft HEAD~1; git reset -q; git add b; git status --porcelain; git rev-parse HEAD; ls -l a b d/x | cut -c1-10",
      ),
    ).toBe(before);
    expect(sh("git for-each-ref --format='%(refname)'")).toBe("refs/heads/main\n");

    // Without the option, or without a checkpoint, files stay as they are.
    const second = await callTools(world, await world.models.next(), [
      "write_file",
      { path: "work/a", content: "again" },
    ]);
    await finish(second.next);
    const { status, body } = await edit(restored.body.message.id, "no files", {});
    expect([status, readText("work/a")]).toEqual([200, "again"]);
    await finish(await world.models.next());
    const checkpointFile = join(home, ".local/state/slipway/checkpoints/chats", id, `${body.message.id}.json`);
    await until(() => existsSync(checkpointFile));
    rmSync(join(home, ".local"), { recursive: true });
    const withoutCheckpoint = await edit(body.message.id, "lost");
    expect([withoutCheckpoint.status, withoutCheckpoint.body.message]).toEqual([
      409,
      expect.stringContaining("no checkpoint"),
    ]);
    // For a failed checkpoint, the error contains the reason.
    await Bun.write(checkpointFile, JSON.stringify({ folders: [], problems: ["work is too large"] }));
    const withFailedCheckpoint = await edit(body.message.id, "in part");
    expect([withFailedCheckpoint.status, withFailedCheckpoint.body.message]).toEqual([
      409,
      expect.stringContaining("work is too large"),
    ]);
    expect([(await edit(999_999, "x")).status, readText("work/a")]).toEqual([404, "again"]);
  },
  scaleTimeout(180_000),
);

test("[UN-12] a chat shows a warning during its turn if its files cannot be saved, and its tools run anyway", async () => {
  await using world = await openToolWorld();
  // No checkpoint can be written, because a file takes the place of their folder.
  mkdirSync(join(world.home, ".local/state/slipway"), { recursive: true });
  writeFileSync(join(world.home, ".local/state/slipway/checkpoints"), "");
  const { id, call } = await openChat(world);
  const getWarnings = async () => (await world.owner.get<Chat>(`/api/v2/chats/${id}`)).warnings;
  const { next, parts } = await callTools(world, call, ["write_file", { path: "notes", content: "x" }]);
  expect(parts).toMatchObject([{ is_error: false }]);
  expect(await getWarnings()).toEqual([expect.stringContaining("Undo does not cover this message's changes")]);
  rmSync(join(world.home, ".local/state/slipway/checkpoints"));
  next.say("done").finish();
  await until(async () => (await world.owner.get<Chat>(`/api/v2/chats/${id}`)).status === "waiting");
  await world.owner.post(`/api/v2/chats/${id}/messages`, { content: [{ type: "text", text: "more" }] });
  const second = await callTools(world, await world.models.next(), ["write_file", { path: "notes", content: "y" }]);
  expect(await getWarnings()).toEqual([]);
  second.next.say("done").finish();
});
