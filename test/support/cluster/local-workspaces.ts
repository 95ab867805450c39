// Local workspaces for stories that need real daemons. They are the server's own, except if the server consists of several nodes, which
// run none: then they are those of a separate worker.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "#src/client.ts";
import { makeKey, startWorker } from "../worker.ts";
import type { World } from "../workspaces.ts";
import { usesActiveNodes } from "./active-nodes.ts";

export type LocalWorkspaces = AsyncDisposable & {
  /** The template fields that select the provisioner. */
  readonly kind: object;
  /** Returns the folder of a workspace. */
  getFolder(workspace_id: string): string;
};

type Server = { readonly server: Pick<World["server"], "url" | "directory">; readonly admin: Client };

/** Must be opened after the world and disposed before it. */
export const openLocalWorkspaces = async (
  { server, admin }: Server,
  { ofWorker: usesWorker = usesActiveNodes }: { ofWorker?: boolean } = {},
): Promise<LocalWorkspaces> => {
  const directory = usesWorker ? join(server.directory, "worker") : server.directory;
  const folderOf = (id: string): string => join(directory, "workspaces", id);
  if (!usesWorker)
    return { kind: { provisioner: "local" }, getFolder: folderOf, [Symbol.asyncDispose]: async () => {} };
  mkdirSync(directory, { recursive: true });
  const { key } = await makeKey(admin);
  const worker = startWorker({ url: server.url, key, name: "locals", directory, kinds: "local" });
  await worker.connected();
  return {
    kind: { provisioner: "external", external: { provisioner: "local" } },
    getFolder: folderOf,
    [Symbol.asyncDispose]: () => worker[Symbol.asyncDispose](),
  };
};
