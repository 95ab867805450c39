// A coding chat from start to end, with a real server, a real model server and a real local workspace: the events of followers, the final
// repository, and an interrupted command.
import { expect } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { GitMessage, GitRepository } from "#schema/agents/git-message.ts";
import type { ClientSocket } from "#src/client.ts";
import { findRepositoryProblems, openStory, outlineMessages, startChat } from "#test/crash/server-story.ts";
import { Follower } from "#test/support/chats.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { until } from "#test/support/until.ts";
import { joinOutput, listMessages } from "./world.ts";

/** Follows the chat's only repository on its git stream. */
const followGit = (socket: ClientSocket) => {
  const waiters = new Set<() => void>();
  const repository = {
    current: undefined as GitRepository | undefined,
    async until(matches: (repository: GitRepository) => boolean): Promise<void> {
      while (!repository.current || !matches(repository.current))
        await new Promise<void>((resolve) => waiters.add(resolve));
    },
  };
  const read = async (): Promise<void> => {
    for (;;) {
      const { repositories = [] } = await socket.json<GitMessage>();
      repository.current = repositories.at(-1) ?? repository.current;
      for (const wake of waiters) wake();
      waiters.clear();
    }
  };
  // The loop ends with the socket.
  void read().catch(() => {});
  return repository;
};

/** Returns the outline of the messages that this follower has received. */
const summarizeFollower = ({ messages }: Follower): string => outlineMessages([...messages.values()]);

testNeeding(
  [needs.git],
  "[EE-1] a chat clones a repository, edits, sees a test fail, fixes it and commits; followers see the final state; an interrupt ends a command",
  async () => {
    await using story = await openStory();
    const { admin } = story.world;
    const wrongSumSeen = Promise.withResolvers<void>();
    // The model continues once the git stream has shown the error.
    story.model.onStep = (step) => (step === 4 ? wrongSumSeen.promise : undefined);
    const { id } = await startChat(story, "Fix work");
    using git = await admin.socket(`/api/v2/chats/${id}/stream/git`);
    const repository = followGit(git);
    void repository.until(({ unified_diff }) => unified_diff.includes("+echo $(($1 * $2))")).then(wrongSumSeen.resolve);
    using first = await Follower.open(admin, id);
    using second = await Follower.openEventStream(admin, id);
    const followers = [first, second];
    await Promise.all(
      followers.map((follower) => follower.until(({ status, messages }) => status === "waiting" && messages.size > 2)),
    );
    await repository.until(({ unified_diff }) => unified_diff === "");
    expect(repository.current).toMatchObject({ branch: "main", remote_origin: join(story.place.scratch, "origin") });
    expect([...story.model.problems, ...(await findRepositoryProblems(story.home, "work", {}))]).toEqual([]);
    const history = await listMessages(admin, id);
    expect(history.map(({ role }) => role.charAt(0)).join("")).toBe("uatattatatatatata");
    expect(followers.map(summarizeFollower)).toEqual([outlineMessages(history), outlineMessages(history)]);
    for (const follower of followers) expect(joinOutput(follower)).toContain("looking 5\nfailed\n");

    await admin.post(`/api/v2/chats/${id}/messages`, { content: [{ type: "text", text: "Wait" }] });
    const parsePid = (follower: Follower) => Number(/(\d+)\n$/.exec(joinOutput(follower))?.[1] ?? 0);
    await first.until((events) => events.status === "running" && parsePid(events) > 0);
    const pid = parsePid(first);
    expect(existsSync(`/proc/${pid}`)).toBe(true);
    const startedAt = performance.now();
    await admin.post<unknown>(`/api/v2/chats/${id}/interrupt`, {});
    await until(() => !existsSync(`/proc/${pid}`));
    // An idle machine needs less than a second.
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    await Promise.all(
      followers.map((follower) =>
        follower.until(({ status, messages }) => status === "waiting" && messages.size > history.length),
      ),
    );
    const outline = outlineMessages(await listMessages(admin, id));
    await Promise.all(followers.map((follower) => follower.until(() => summarizeFollower(follower) === outline)));
    // The model repeats an ID, so the call gets another one (rule CH-55).
    expect(outline).toMatch(/tool: tool-result call_[0-9a-f]{32} true$/);
  },
  scaleTimeout(240_000),
);
