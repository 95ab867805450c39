// File operations in the workspace for the server: list, read, write, edit (facts/wire 4.1, rules PT-5, PT-6). Handles only regular files
// up to a maximum size; writes are atomic.
import { constants } from "node:fs";
import { lstat, mkdir, open, opendir, readlink, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { AppError, invalidField } from "#base/errors.ts";
import { detectBinaryType, TEXT_SAMPLE_BYTES } from "#base/file-signature.ts";
import { uuid } from "#base/ids.ts";
import type { DirectoryListing, EditedFiles, EditFiles, FileLines } from "#schema/agents/agent-files.ts";
import { createUnifiedDiff } from "../git/unified-diff.ts";
import { applyEdit } from "./edit-text.ts";

/** Maximum size of a file that is written, or read or edited as text. */
export const MAX_FILE_BYTES = 32 * 1024 * 1024;
const MAX_ENTRIES = 10_000;
const MAX_LINES_BYTES = 1024 * 1024;

/** Returns at most 10,000 entries, sorted by name. */
export const listDirectory = (path: string): Promise<DirectoryListing> =>
  explainFileErrors(path, async () => {
    const contents: DirectoryListing["contents"] = [];
    let truncated = false;
    for await (const entry of await opendir(path)) {
      if (contents.length >= MAX_ENTRIES) {
        truncated = true;
        break;
      }
      const absolute_path = join(path, entry.name);
      const stats = await stat(absolute_path).catch(() => undefined);
      contents.push({ name: entry.name, absolute_path, is_dir: stats?.isDirectory() ?? false, size: stats?.size ?? 0 });
    }
    contents.sort((a, b) => (a.name < b.name ? -1 : 1));
    return { absolute_path: path, contents, truncated };
  });

/**
 * Returns the path with links and dots resolved; for a link to something that does not exist yet, the path it points to. Rejects with 404
 * if it does not exist.
 */
export const resolvePath = (path: string): Promise<string> =>
  explainFileErrors(path, () =>
    realpath(path).catch(async (error) => {
      if (!(await isLink(path))) throw error;
      return resolveTarget(path, MAX_LINKS);
    }),
  );

const MAX_LINKS = 40;

const isLink = (path: string): Promise<boolean> =>
  lstat(path).then(
    (found) => found.isSymbolicLink(),
    () => false,
  );

const resolveTarget = async (path: string, remainingLinks: number): Promise<string> => {
  const real = await realpath(path).catch(() => undefined);
  if (real !== undefined) return real;
  const folder = await resolveTarget(dirname(path), remainingLinks);
  if (!(await isLink(path))) return join(folder, basename(path));
  if (remainingLinks === 0) throw invalidField("path", "leads through too many symbolic links");
  return resolveTarget(resolve(folder, await readlink(path)), remainingLinks - 1);
};

/** Streams bytes `offset` to `offset` + `limit`. */
export const readFile = async (path: string, offset: number, limit: number): Promise<Response> => {
  const size = await readSize(path);
  // Rejects a file that cannot be opened now, because an error after the response has started could only cut it off.
  await explainFileErrors(path, async () => (await open(path)).close());
  const end = Math.min(size, offset + limit);
  return new Response(Bun.file(path).slice(offset, Math.max(offset, end)), {
    headers: { "content-type": "application/octet-stream", "x-file-size": String(size) },
  });
};

/**
 * Returns lines from line `offset` (1-based), at most `limit` lines and 1 MiB. Rejects with 413 for a text above 32 MiB; a file that is not
 * text has a media type and no lines.
 */
export const readFileLines = async (path: string, offset: number, limit: number): Promise<FileLines> => {
  const file_size = await readSize(path);
  const media_type = await detectTypeAt(path);
  if (media_type !== undefined) return { content: "", file_size, lines_read: 0, total_lines: 0, media_type };
  const text = new TextDecoder().decode(await readBytes(path));
  const lines = text === "" ? [] : text.replace(/\n$/, "").split("\n");
  const returned: string[] = [];
  let bytes = 0;
  for (const line of lines.slice(offset - 1, offset - 1 + limit)) {
    bytes += line.length + 1;
    if (bytes > MAX_LINES_BYTES) break;
    returned.push(line);
  }
  return {
    content: returned.join("\n"),
    file_size,
    lines_read: returned.length,
    total_lines: lines.length,
  };
};

/** Replaces the whole file and creates missing folders. Keeps the mode of an existing file, and follows links. */
export const writeFile = (path: string, content: Uint8Array | string): Promise<void> =>
  explainFileErrors(path, async () => {
    await mkdir(dirname(path), { recursive: true });
    const target = await realpath(path).catch(() => path);
    const before = await stat(target).catch(() => undefined);
    if (before && !before.isFile()) throw invalidField("path", "is not a regular file");
    const temporaryFile = join(dirname(target), `.${uuid()}.tmp`);
    try {
      const mode = before ? before.mode & 0o7777 : 0o666;
      const file = await open(temporaryFile, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, mode);
      try {
        await file.writeFile(content);
        if (before) await file.chmod(mode);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporaryFile, target);
    } catch (error) {
      await rm(temporaryFile, { force: true });
      throw error;
    }
  });

/** Like writeFile(), for a person's upload: rejects with 409 if the file exists, unless `replaces` is true. */
export const uploadFile = async (path: string, content: Uint8Array, replaces: boolean): Promise<void> => {
  const existing = await stat(path).catch(() => undefined);
  if (existing && !replaces) throw new AppError("conflict", "There is already a file of this name.", { detail: path });
  await writeFile(path, content);
};

type ResolvedEdits = readonly (EditFiles["files"][number] & { absolute_path: string })[];
type EditedText = { readonly path: string; readonly before: string; readonly text: string };

/** Validates all edits before writing any file. Rejects with 400 for the first edit that cannot be applied. */
export const editFiles = async (files: ResolvedEdits): Promise<EditedFiles> => {
  const texts = await applyEdits(files);
  for (const [path, { text }] of texts) await writeFile(path, text);
  return createDiffs([...texts.values()]);
};

/** Returns the diffs of the edits without writing any file. Rejects with 400 like editFiles(). */
export const previewEdits = async (files: ResolvedEdits): Promise<EditedFiles> =>
  createDiffs([...(await applyEdits(files)).values()]);

/** Returns the diff of replacing the whole file, without writing it. A file that is not text has no diff. */
export const previewWrite = async (path: string, absolute_path: string, text: string): Promise<EditedFiles> => {
  const before = await readBytes(absolute_path).catch((error: unknown) => {
    if (error instanceof AppError && error.kind === "not_found") return undefined;
    throw error;
  });
  if (before === undefined) {
    const diff = createUnifiedDiff(path, "", text).replace(/^--- .*$/m, "--- /dev/null");
    return { files: [{ path, diff, is_new: true }] };
  }
  const isText = detectBinaryType(before) === undefined;
  return { files: [{ path, diff: isText ? createUnifiedDiff(path, new TextDecoder().decode(before), text) : "" }] };
};

const createDiffs = (texts: readonly EditedText[]): EditedFiles => ({
  files: texts.map(({ path, before, text }) => ({ path, diff: createUnifiedDiff(path, before, text) })),
});

/** Returns the edited texts by absolute path. */
const applyEdits = async (files: ResolvedEdits): Promise<ReadonlyMap<string, EditedText>> => {
  const texts = new Map<string, EditedText>();
  for (const [i, { path, absolute_path, edits }] of files.entries()) {
    const before = texts.get(absolute_path)?.before ?? (await readEditableText(absolute_path));
    let text = texts.get(absolute_path)?.text ?? before;
    for (const [j, edit] of edits.entries()) {
      const edited = applyEdit(text, edit);
      if ("problem" in edited) throw invalidField(`files.${i}.edits.${j}.${edited.field}`, edited.problem);
      text = edited.text;
      if (text.length > MAX_FILE_BYTES) throw fileTooLarge();
    }
    texts.set(absolute_path, { path, before, text });
  }
  return texts;
};

/** Reads text so that it can be written back unchanged apart from the edits: keeps the byte order mark and rejects other encodings. */
const readEditableText = async (path: string): Promise<string> => {
  const bytes = await readBytes(path);
  const type = detectBinaryType(bytes);
  if (type !== undefined) throw notEditable(`${path}: ${type}, ${bytes.byteLength} bytes.`);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw notEditable(`${path}: it is not in UTF-8.`);
  }
};

const notEditable = (detail: string): AppError =>
  new AppError("unsupported_media", "Only text in UTF-8 can be edited.", { detail });

const detectTypeAt = (path: string): Promise<string | undefined> =>
  explainFileErrors(path, async () => detectBinaryType(await Bun.file(path).slice(0, TEXT_SAMPLE_BYTES).bytes()));

const readBytes = async (path: string): Promise<Uint8Array> => {
  if ((await readSize(path)) > MAX_FILE_BYTES) throw fileTooLarge();
  return explainFileErrors(path, () => Bun.file(path).bytes());
};

// Rejects pipes and devices, because reading them might never end.
const readSize = (path: string): Promise<number> =>
  explainFileErrors(path, async () => {
    const stats = await stat(path);
    if (!stats.isFile()) throw invalidField("path", "is not a regular file");
    return stats.size;
  });

const fileTooLarge = (): AppError => new AppError("too_large", `Files above ${MAX_FILE_BYTES} bytes are not handled.`);

const explainFileErrors = async <T>(path: string, work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof AppError) throw error;
    const { code } = error as { code?: string };
    const detail = `${path}: ${code ?? "failed"}`;
    if (code === "ENOENT") throw new AppError("not_found", "There is no such file or folder.", { detail });
    if (code === "EACCES" || code === "EPERM") throw new AppError("forbidden", "The user may not do this.", { detail });
    if (code === "ENOSPC") throw new AppError("storage_full", "The disk of the workspace is full.", { detail });
    throw new AppError("invalid", "The file cannot be handled.", { detail, cause: error });
  }
};
