// Local workspaces for stories that want real daemons: those of the server itself, or of a worker alongside it where the server is a node, or several
// that all work: nodes have none.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "#src/client.ts";
import { makeKey, startWorker } from "../worker.ts";
import type { World } from "../workspaces.ts";
import { asActive } from "./active-nodes.ts";

export type LocalWorkspaces = AsyncDisposable & {
  /** What a template for them says of who brings them to life. */
  readonly kind: object;
  /** What is kept of one. */
  folderOf(workspace_id: string): string;
};

type Server = { readonly server: Pick<World["server"], "url" | "directory">; readonly admin: Client };

/** To be opened after the world and disposed before it. */
export const openLocals = async (
  { server, admin }: Server,
  { ofWorker = asActive }: { ofWorker?: boolean } = {},
): Promise<LocalWorkspaces> => {
  const directory = ofWorker ? join(server.directory, "worker") : server.directory;
  const folderOf = (id: string): string => join(directory, "workspaces", id);
  if (!ofWorker) return { kind: { provisioner: "local" }, folderOf, [Symbol.asyncDispose]: async () => {} };
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
