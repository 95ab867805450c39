// `slipway fork WORKSPACE [--count N] [--name NAME]... [--start] [--no-chats]`: creates workspaces with copies of this one's files, and
// waits for them.
import { usageError } from "#base/usage-error.ts";
import { type Fork, MAX_COPIES } from "#schema/workspaces/fork.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { readMessages, withServer } from "../remote.ts";
import { selectWorkspace } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, {
    values: ["count"],
    lists: ["name"],
    switches: ["start", "no-chats", "no-wait"],
  });
  const count = value.count === undefined ? undefined : Number(value.count);
  if (count !== undefined && !(Number.isInteger(count) && count >= 1 && count <= MAX_COPIES)) {
    throw usageError("workspaces fork", `--count is a number from 1 to ${MAX_COPIES}`);
  }
  const findWorkspace = selectWorkspace(input, words);
  return withServer("workspaces fork", input, value, async ({ client }) => {
    const workspace = await findWorkspace(client);
    const created = await client.post(`/api/v2/workspaces/${workspace.id}/forks`, {
      ...(count === undefined ? {} : { count }),
      ...(list.name.length > 0 ? { names: list.name } : {}),
      ...(has["no-chats"] ? { chats: false } : {}),
      ...(has.start ? { start: true } : {}),
    });
    const fork = has["no-wait"] ? created : await waitForFork(client, workspace, created);
    input.print(has.json ? JSON.stringify(fork) : describe(fork, has.start));
    const failed = fork.copies.find(({ status }) => status === "failed");
    if (fork.status === "failed" || failed) {
      throw new VerbFailure(`${failed?.name ?? "The fork"} failed: ${toPlainLine(failed?.error ?? fork.error)}`);
    }
  });
};

/** Returns one line for each workspace with its state. */
const describe = ({ copies }: Fork, starts: boolean): string => {
  const texts = {
    waiting: "is waiting for its files",
    creating: "is being created",
    failed: "failed",
    deleted: "was deleted",
  };
  return copies
    .map(({ name, status }) => {
      if (status !== "ready") return `${toPlainLine(name)} ${texts[status]}.`;
      return starts
        ? `${toPlainLine(name)} is running.`
        : `${toPlainLine(name)} is ready. Start it with: slipway start ${toPlainLine(name)}`;
    })
    .join("\n");
};

/** Returns the fork once all copies have succeeded or failed. */
export const waitForFork = async (client: Client, { id }: Workspace, { id: fork }: Fork): Promise<Fork> => {
  const hasEnded = ({ status, copies }: Fork): boolean =>
    status === "ready" ||
    status === "failed" ||
    copies.every((one) => one.status !== "waiting" && one.status !== "creating");
  // The workspace's stream sends a message when its snapshot exists, and when it is removed after the last copy.
  for await (const _ of readMessages(client, `/api/v2/workspaces/${id}/watch-ws`)) {
    const found = await client.get(`/api/v2/workspaces/${id}/forks/${fork}`);
    if (hasEnded(found)) return found;
  }
  throw new VerbFailure("The workspace was deleted.");
};
