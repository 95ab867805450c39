// Prepares a new container before it starts. Checks /etc/passwd and /etc/group, and makes the container's user the owner of the volumes'
// folders, because an engine creates the folders of empty volumes as root.
import { createTarEnd, createTarFolder, joinStreams } from "#base/program-tar.ts";
import { readTar } from "../archive-tar.ts";
import { ProvisionError } from "../provisioner.ts";
import type { Engine } from "./engine.ts";

const MAX_PASSWD_BYTES = 1024 * 1024;
/** The engine reads these files when it starts a container. */
const USER_FILES = ["/etc/passwd", "/etc/group"];
/** Engines take too long to read larger files. */
const MAX_USER_FILE_BYTES = 16 * 1024 * 1024;

/**
 * Throws ProvisionError for a container with user files that are pipes, devices or too large. The engine reads these files while it holds
 * the container's lock. If one is a pipe, the engine waits forever, and can neither start nor remove the container.
 */
export const checkUserFiles = async (
  engine: Engine,
  { id, image, signal }: { readonly id: string; readonly image: string; readonly signal: AbortSignal },
): Promise<void> => {
  for (const path of USER_FILES) {
    const found = await engine.findFile(id, path, signal);
    const file = found?.link ? await engine.findFile(id, found.link, signal) : found;
    if (file === undefined || (file.isRegular && file.size <= MAX_USER_FILE_BYTES)) continue;
    const problem = file.isRegular ? `has more than ${MAX_USER_FILE_BYTES / 1024 / 1024} MiB` : "is not a regular file";
    throw new ProvisionError(`${path} of the image ${image} ${problem}. Use an image with a usual ${path}.`);
  }
};

type Folders = {
  /** The container, which has been created but not started. */
  readonly id: string;
  /** The container's `User`; empty for root. */
  readonly user: string;
  readonly paths: readonly string[];
  readonly signal: AbortSignal;
};

/** Makes the user the owner of the folders. Does nothing for root, or for a user that the image does not contain. */
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
  const call = { query: { path: "/etc/passwd" }, signal, expectedStatuses: [404] };
  const bytes = await engine.bytes("read the users of the image", `/containers/${id}/archive`, call, MAX_PASSWD_BYTES);
  const entries = await readTar({
    size: bytes.length,
    read: async (at, length) => bytes.subarray(at, at + length),
  }).catch(() => []);
  const text = new TextDecoder().decode((await entries[0]?.read(MAX_PASSWD_BYTES)) ?? new Uint8Array());
  const [, , uid, gid] =
    text
      .split("\n")
      .find((line) => line.startsWith(`${name}:`))
      ?.split(":") ?? [];
  return uid !== undefined && gid !== undefined ? { uid: Number(uid), gid: Number(gid) } : undefined;
};
