// The files of a template version, read from its archive in the browser, and the diff between two versions. The unpacker and the differ are
// loaded on first use.
import { Problem } from "./api.ts";

/** `text` is undefined for a binary file. `bytes` is the unchanged content. */
export type VersionFile = { readonly bytes: Uint8Array; readonly text: string | undefined };
export type VersionFiles = ReadonlyMap<string, VersionFile>;

/** Maximum unpacked size of the archive, which is held in the page's memory. */
const MAX_UNPACKED_BYTES = 50_000_000;

const decoder = new TextDecoder("utf-8", { fatal: true });

export const decodeText = (bytes: Uint8Array): string | undefined => {
  if (bytes.subarray(0, 8_000).includes(0)) return undefined;
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
};

/** Returns the files by path, sorted. Throws Problem. */
export const readVersionFiles = async (file_id: string): Promise<VersionFiles> => {
  const [{ unzipSync }, response] = await Promise.all([
    import("./unzip.ts"),
    fetch(`/api/v2/files/${encodeURIComponent(file_id)}?format=zip`).catch(() => {
      throw new Problem(0, { message: "The server cannot be reached." });
    }),
  ]);
  if (!response.ok) throw new Problem(response.status, await response.json());
  let totalBytes = 0;
  const entries = unzipSync(new Uint8Array(await response.arrayBuffer()), {
    filter: ({ name, originalSize }) => {
      totalBytes += originalSize;
      if (totalBytes > MAX_UNPACKED_BYTES) throw new Error("The archive is too large to show here.");
      return !name.endsWith("/");
    },
  });
  const paths = Object.keys(entries).sort();
  return new Map(
    paths.map((path) => {
      const bytes = entries[path] as Uint8Array;
      return [path.replace(/^\.\//, ""), { bytes, text: decodeText(bytes) }] as const;
    }),
  );
};

const CONTEXT_LINES = 3;

/** Returns a unified diff in git's format; empty if the versions are equal. */
export const makeDiff = async (before: VersionFiles, after: VersionFiles): Promise<string> => {
  const { structuredPatch } = await import("./text-diff.ts");
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  return paths
    .map((path) => {
      const [old, current] = [before.get(path), after.get(path)];
      if (old && current && equalBytes(old.bytes, current.bytes)) return "";
      const head = [`diff --git a/${path} b/${path}`];
      if (!old) head.push("new file mode 100644");
      if (!current) head.push("deleted file mode 100644");
      if ((old && old.text === undefined) || (current && current.text === undefined)) {
        return `${[...head, `Binary files a/${path} and b/${path} differ`].join("\n")}\n`;
      }
      const { hunks } = structuredPatch(path, path, old?.text ?? "", current?.text ?? "", "", "", {
        context: CONTEXT_LINES,
      });
      head.push(old ? `--- a/${path}` : "--- /dev/null", current ? `+++ b/${path}` : "+++ /dev/null");
      const lines = hunks.flatMap((hunk) => [
        `@@ -${hunk.oldStart},${hunk.oldLines} +${hunk.newStart},${hunk.newLines} @@`,
        ...hunk.lines,
      ]);
      return `${[...head, ...lines].join("\n")}\n`;
    })
    .join("");
};

const equalBytes = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, index) => byte === b[index]);
