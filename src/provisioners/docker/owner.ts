// Sets the owner of a new container's volume folders to the user who works there: an engine creates the folders of empty volumes as root.
import { createTarEnd, createTarFolder, joinStreams } from "#base/program-tar.ts";
import { readTar } from "../archive-tar.ts";
import type { Engine } from "./engine.ts";

const MAX_PASSWD = 1024 * 1024;

type Folders = {
  /** The container, which has been created but not started. */
  readonly id: string;
  /** The container's `User`; empty for root. */
  readonly user: string;
  readonly paths: readonly string[];
  readonly signal: AbortSignal;
};

/** Gives the folders to the user. Does nothing for root, or for a user that the image does not contain. */
export const chownFolders = async (engine: Engine, { id, user, paths, signal }: Folders): Promise<void> => {
  const name = user.split(":")[0] ?? "";
  if (name === "" || name === "root" || name === "0" || paths.length === 0) return;
  const owner = /^\d+$/.test(name)
    ? { uid: Number(name), gid: Number(name) }
    : await findOwner(engine, id, name, signal);
  if (!owner) return;
  const tar = joinStreams([...paths.map((path) => createTarFolder(path, owner)), createTarEnd()]);
  await engine.json("take the folders of the workspace", "PUT", `/containers/${id}/archive`, {
    query: { path: "/" },
    tar,
    signal,
  });
};

const findOwner = async (
  engine: Engine,
  id: string,
  name: string,
  signal: AbortSignal,
): Promise<{ uid: number; gid: number } | undefined> => {
  const call = { query: { path: "/etc/passwd" }, signal, fine: [404] };
  const bytes = await engine.bytes("read the users of the image", `/containers/${id}/archive`, call, MAX_PASSWD);
  const entries = await readTar({
    size: bytes.length,
    read: async (at, length) => bytes.subarray(at, at + length),
  }).catch(() => []);
  const text = new TextDecoder().decode((await entries[0]?.read(MAX_PASSWD)) ?? new Uint8Array());
  const [, , uid, gid] =
    text
      .split("\n")
      .find((line) => line.startsWith(`${name}:`))
      ?.split(":") ?? [];
  return uid !== undefined && gid !== undefined ? { uid: Number(uid), gid: Number(gid) } : undefined;
};
