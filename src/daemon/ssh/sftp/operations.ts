// Performs an SFTP client's requests on the workspace's disk. Each request has one response packet; a system error becomes a status. [WN-5]
import { constants, type Stats } from "node:fs";
import * as fs from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import { formatLongName, NO_ATTRIBUTES, readAttributes, setAttributes, toAttributeFields } from "./attributes.ts";
import { ANSWER, encodePacket, type Field, type Fields, MAX_PACKET_BYTES, REQUEST, STATUS } from "./codec.ts";
import type { Handles } from "./handles.ts";

export type SftpRoot = { readonly directory: string; readonly home: string };
type Reply = { type: number; fields: Field[] };
type Operation = (fields: Fields, at: { handles: Handles; root: SftpRoot }) => Promise<Reply>;

/** Leaves room for the header of a data packet. */
export const MAX_DATA = MAX_PACKET_BYTES - 1_024;
/** Maximum number of names in one response. */
const MAX_NAMES = 128;
const OPEN_FLAG = { read: 1, write: 2, append: 4, create: 8, truncate: 16, exclusive: 32 } as const;

export const toStatusReply = (code: number, message = ""): Reply => ({
  type: ANSWER.status,
  fields: [{ word: code }, { text: message }, { text: "" }],
});
const OK = toStatusReply(STATUS.ok);
const statusOk = async (act: Promise<unknown>): Promise<Reply> => {
  await act;
  return OK;
};
const toAttributesReply = async (act: Promise<Stats>): Promise<Reply> => ({
  type: ANSWER.attrs,
  fields: toAttributeFields(await act),
});
const toNamesReply = (list: { name: string; long: string; attributes: Field[] }[]): Reply => ({
  type: ANSWER.name,
  fields: [
    { word: list.length },
    ...list.flatMap(({ name, long, attributes }) => [{ text: name }, { text: long }, ...attributes]),
  ],
});
const toNameReply = (name: string): Reply => toNamesReply([{ name, long: name, attributes: NO_ATTRIBUTES }]);

/** Converts bit by bit: any combination is possible, and scp uses some that have no letter form. */
const openFlags = (bits: number): number =>
  (bits & OPEN_FLAG.read && bits & OPEN_FLAG.write
    ? constants.O_RDWR
    : bits & OPEN_FLAG.write
      ? constants.O_WRONLY
      : constants.O_RDONLY) |
  (bits & OPEN_FLAG.append ? constants.O_APPEND : 0) |
  (bits & OPEN_FLAG.create ? constants.O_CREAT : 0) |
  (bits & OPEN_FLAG.truncate ? constants.O_TRUNC : 0) |
  (bits & OPEN_FLAG.exclusive ? constants.O_EXCL : 0);

/** Resolves relative paths from the workspace's folder, and `~` from the home. */
const readPath = (fields: Fields, { directory, home }: SftpRoot): string => {
  const text = fields.text();
  if (text === "~" || text.startsWith("~/")) return join(home, text.slice(1));
  return isAbsolute(text) ? text : join(directory, text);
};

const EXTENSIONS: Readonly<Record<string, Operation>> = {
  "posix-rename@openssh.com": (fields, { root }) => statusOk(fs.rename(readPath(fields, root), readPath(fields, root))),
  "hardlink@openssh.com": (fields, { root }) => statusOk(fs.link(readPath(fields, root), readPath(fields, root))),
  "fsync@openssh.com": (fields, { handles }) => statusOk(handles.getFile(fields.text()).file.sync()),
  "expand-path@openssh.com": async (fields, { root }) => toNameReply(readPath(fields, root)),
  "limits@openssh.com": async () => ({
    type: ANSWER.extendedReply,
    fields: [MAX_PACKET_BYTES, MAX_DATA, MAX_DATA, 0].map((long) => ({ long })),
  }),
};
export const EXTENSION_NAMES: readonly string[] = Object.keys(EXTENSIONS);

const OPERATIONS: Readonly<Record<number, Operation>> = {
  [REQUEST.open]: async (fields, { handles, root }) => {
    const path = readPath(fields, root);
    const bits = fields.uint32();
    const { mode = 0o666 } = readAttributes(fields);
    const file = await fs.open(path, openFlags(bits), mode & 0o7777);
    try {
      const handle = handles.add({ file, isAppending: (bits & OPEN_FLAG.append) !== 0 });
      return { type: ANSWER.handle, fields: [{ text: handle }] };
    } catch (error) {
      await file.close();
      throw error;
    }
  },
  [REQUEST.close]: (fields, { handles }) => statusOk(handles.close(fields.text())),
  [REQUEST.read]: async (fields, { handles }) => {
    const { file } = handles.getFile(fields.text());
    const [at, length] = [fields.long(), Math.min(fields.uint32(), MAX_DATA)];
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length, at);
    if (bytesRead === 0) return toStatusReply(STATUS.eof);
    return { type: ANSWER.data, fields: [{ bytes: buffer.subarray(0, bytesRead) }] };
  },
  [REQUEST.write]: async (fields, { handles }) => {
    const { file, isAppending } = handles.getFile(fields.text());
    const at = fields.long();
    const data = fields.bytes();
    for (let sent = 0; sent < data.byteLength; ) {
      const { bytesWritten } = await file.write(data, sent, data.byteLength - sent, isAppending ? null : at + sent);
      sent += bytesWritten;
    }
    return OK;
  },
  [REQUEST.stat]: (fields, { root }) => toAttributesReply(fs.stat(readPath(fields, root))),
  [REQUEST.lstat]: (fields, { root }) => toAttributesReply(fs.lstat(readPath(fields, root))),
  [REQUEST.fstat]: (fields, { handles }) => toAttributesReply(handles.getFile(fields.text()).file.stat()),
  [REQUEST.setstat]: (fields, { root }) => statusOk(setAttributes(readPath(fields, root), readAttributes(fields))),
  [REQUEST.fsetstat]: async (fields, { handles }) => {
    const { file } = handles.getFile(fields.text());
    const { size, owner, mode, times } = readAttributes(fields);
    if (size !== undefined) await file.truncate(size);
    if (owner) await file.chown(owner.uid, owner.gid);
    if (mode !== undefined) await file.chmod(mode & 0o7777);
    if (times) await file.utimes(times.atime, times.mtime);
    return OK;
  },
  [REQUEST.opendir]: async (fields, { handles, root }) => {
    const path = readPath(fields, root);
    const listed = await fs.readdir(path);
    return { type: ANSWER.handle, fields: [{ text: handles.add({ path, names: [".", "..", ...listed] }) }] };
  },
  [REQUEST.readdir]: async (fields, { handles }) => {
    const folder = handles.getFolder(fields.text());
    const list: { name: string; long: string; attributes: Field[] }[] = [];
    while (list.length === 0 && folder.names.length > 0) {
      for (const name of folder.names.splice(0, MAX_NAMES)) {
        // The file may have been removed since it was listed.
        const stats = await fs.lstat(join(folder.path, name)).catch(() => undefined);
        if (stats) list.push({ name, long: formatLongName(name, stats), attributes: toAttributeFields(stats) });
      }
    }
    return list.length === 0 ? toStatusReply(STATUS.eof) : toNamesReply(list);
  },
  [REQUEST.remove]: (fields, { root }) => statusOk(fs.unlink(readPath(fields, root))),
  [REQUEST.mkdir]: async (fields, { root }) => {
    const path = readPath(fields, root);
    return await statusOk(fs.mkdir(path, (readAttributes(fields).mode ?? 0o777) & 0o7777));
  },
  [REQUEST.rmdir]: (fields, { root }) => statusOk(fs.rmdir(readPath(fields, root))),
  [REQUEST.realpath]: async (fields, { root }) => {
    const path = readPath(fields, root);
    // A path that does not exist yet is valid: clients resolve it before they create it.
    return toNameReply(await fs.realpath(path).catch(() => resolve(path)));
  },
  [REQUEST.rename]: async (fields, { root }) => {
    const [from, to] = [readPath(fields, root), readPath(fields, root)];
    // In this version of the protocol, rename never replaces a file; posix-rename does.
    if (await fs.lstat(to).catch(() => undefined)) return toStatusReply(STATUS.failure, "it is there already");
    return await statusOk(fs.rename(from, to));
  },
  [REQUEST.readlink]: async (fields, { root }) => toNameReply(await fs.readlink(readPath(fields, root))),
  // The link's target comes before its path, as in OpenSSH and contrary to the draft.
  [REQUEST.symlink]: (fields, { root }) => statusOk(fs.symlink(fields.text(), readPath(fields, root))),
  [REQUEST.extended]: async (fields, at) => {
    const operation = EXTENSIONS[fields.text()];
    return operation ? await operation(fields, at) : toStatusReply(STATUS.unsupported, "unknown extension");
  },
};

/** Returns the response packet for one request. Throws SftpError for an invalid one. */
export const handleRequest = async (
  type: number,
  fields: Fields,
  at: { handles: Handles; root: SftpRoot },
): Promise<Buffer> => {
  const id = fields.uint32();
  const operation = OPERATIONS[type];
  const reply = operation
    ? await (async () => await operation(fields, at))().catch((error: Error) => toErrorReply(error))
    : toStatusReply(STATUS.unsupported, "unknown request");
  return encodePacket(reply.type, { word: id }, ...reply.fields);
};

const toErrorReply = (error: Error & { code?: string }): Reply => {
  if (error.name === "SftpError") throw error;
  if (error.code === "ENOENT") return toStatusReply(STATUS.noSuchFile, "no such file");
  if (error.code === "EACCES" || error.code === "EPERM") return toStatusReply(STATUS.denied, "permission denied");
  return toStatusReply(STATUS.failure, error.message);
};
