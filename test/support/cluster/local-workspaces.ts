// Local workspaces for stories that want real daemons: those of the server itself, or of a worker beside it where the server is several nodes that
// all work, which have none.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { makeKey, startWorker } from "../worker.ts";
import type { World } from "../workspaces.ts";
import { asActive } from "./active-nodes.ts";

export type LocalWorkspaces = AsyncDisposable & {
  /** What a template for them says of who brings them to life. */
  readonly kind: object;
  /** What is kept of one. */
  folderOf(workspace_id: string): string;
};

/** To be opened after the world and disposed before it. */
export const openLocals = async ({ server, admin }: World): Promise<LocalWorkspaces> => {
  const directory = asActive ? join(server.directory, "worker") : server.directory;
  const folderOf = (id: string): string => join(directory, "workspaces", id);
  if (!asActive) return { kind: { provisioner: "local" }, folderOf, [Symbol.asyncDispose]: async () => {} };
  mkdirSync(directory, { recursive: true });
  const { key } = await makeKey(admin);
  const worker = startWorker({ url: server.url, key, name: "locals", directory, kinds: "local" });
  await worker.connected();
  return {
    kind: { provisioner: "external", external: { provisioner: "local" } },
    folderOf,
    [Symbol.asyncDispose]: () => worker[Symbol.asyncDispose](),
  };
};
