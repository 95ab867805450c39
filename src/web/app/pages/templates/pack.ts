// Packs dropped or selected files for upload: an archive is sent unchanged, a folder as a tar archive.
import { Problem } from "../../../browser/api.ts";
import { makeTar, type TarEntry } from "../../data/tar.ts";

const loadEntry = async (file: File, path: string): Promise<TarEntry> => ({
  path,
  bytes: new Uint8Array(await file.arrayBuffer()),
});

/** Git's own data is not part of a template. */
const isIncluded = (path: string): boolean => !path.split("/").includes(".git");

/** Packs the files of a folder input, whose paths begin with the folder's name. */
export const packFolder = async (files: readonly File[]): Promise<Blob> => {
  const entries = files.map((file) => ({ file, path: file.webkitRelativePath.split("/").slice(1).join("/") }));
  const included = entries.filter(({ path }) => isIncluded(path));
  return makeTar(await Promise.all(included.map(({ file, path }) => loadEntry(file, path))));
};

const listChildren = async (folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> => {
  const reader = folder.createReader();
  const entries: FileSystemEntry[] = [];
  for (;;) {
    // Returns a batch of entries at a time, and an empty one at the end.
    const batch = await new Promise<FileSystemEntry[]>((done, fail) => reader.readEntries(done, fail));
    if (batch.length === 0) return entries;
    entries.push(...batch);
  }
};

const loadEntries = async (entry: FileSystemEntry, path: string): Promise<TarEntry[]> => {
  if (!isIncluded(path)) return [];
  if (entry.isDirectory) {
    const children = await listChildren(entry as FileSystemDirectoryEntry);
    return (await Promise.all(children.map((one) => loadEntries(one, path ? `${path}/${one.name}` : one.name)))).flat();
  }
  const file = await new Promise<File>((done, fail) => (entry as FileSystemFileEntry).file(done, fail));
  return [await loadEntry(file, path)];
};

/** Packs a dropped folder or archive; undefined if it is neither. Entries must be read synchronously, before the first await. */
export const packDropped = async (items: DataTransferItemList): Promise<Blob | undefined> => {
  const [item] = [...items];
  const entry = item?.webkitGetAsEntry();
  const file = item?.getAsFile();
  if (entry?.isDirectory) return makeTar(await loadEntries(entry, ""));
  return file ?? undefined;
};

const detectType = async (archive: Blob): Promise<string> => {
  const [a, b] = new Uint8Array(await archive.slice(0, 2).arrayBuffer());
  return a === 0x50 && b === 0x4b ? "application/zip" : "application/x-tar";
};

/** Uploads an archive and returns its ID. Throws Problem. */
export const upload = async (archive: Blob): Promise<string> => {
  const headers = { "content-type": await detectType(archive) };
  const response = await fetch("/api/v2/files", { method: "POST", headers, body: archive }).catch(() => {
    throw new Problem(0, { message: "The server cannot be reached." });
  });
  const answer = await response.json();
  if (!response.ok) throw new Problem(response.status, answer);
  return answer.hash;
};
