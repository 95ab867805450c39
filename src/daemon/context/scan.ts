// Scans the roots of a workspace for instruction files, skills and MCP configs (facts/chats 5.5, rules CX-1 to CX-5). A problem with one
// resource is reported on that resource and does not affect the others. Used by context.ts.
import { readdir, realpath } from "node:fs/promises";
import { basename, join } from "node:path";
import type { StoredResource } from "#schema/chats/chat-context.ts";
import { type ContextFile, decodeText, readContextFile } from "./file.ts";
import { expandImports } from "./imports.ts";
import { parseSkillHead } from "./skill.ts";

const INSTRUCTION_FILES = ["AGENTS.md", "CLAUDE.md", ".cursorrules"];
const SKILL_FOLDERS = ["skills", ".agents/skills", ".claude/skills", ".codex/skills"];
const MCP_FILE = ".mcp.json";
/** Maximum bytes of one file, bytes of all files, and number of resources. */
export const LIMITS = { file: 64 * 1024, total: 2 * 1024 * 1024, count: 500 };
/** Maximum number of plugin folders scanned, and their depth in the cache: source, plugin, version. */
const MAX_PLUGINS = 100;
const MAX_PLUGIN_DEPTH = 3;

export type Scan = {
  readonly resources: readonly StoredResource[];
  /** Says how many resources were left out; empty if none were. */
  readonly error: string;
  /** The readable MCP configs: their location and text. */
  readonly configs: readonly { readonly folder: string; readonly source: string; readonly text: string }[];
  /** Folders to watch for changes. */
  readonly watched: readonly string[];
};

/** Returns the folders to scan. `extra`: folders that the workspace declares. */
export const findContextRoots = async (locations: {
  directory: string;
  home: string;
  extra: readonly string[];
}): Promise<string[]> => {
  const roots = [locations.directory, join(locations.home, ".slipway"), ...locations.extra];
  return [...roots, ...(await findPlugins(join(locations.home, ".claude", "plugins", "cache")))];
};

export const scanContext = async (roots: readonly string[]): Promise<Scan> => {
  const result = new ScanResult();
  for (const folder of roots) {
    const root = await realpath(folder).catch(() => undefined);
    if (root === undefined || !result.begin(root)) continue;
    for (const name of INSTRUCTION_FILES) await readInstruction(result, root, join(folder, name));
    await readMcpConfig(result, root, join(folder, MCP_FILE));
    for (const skillsFolder of SKILL_FOLDERS) await scanSkills(result, root, join(folder, skillsFolder));
  }
  return result.result;
};

const readInstruction = async (result: ScanResult, root: string, source: string): Promise<void> => {
  const file = await readContextFile(source, root, LIMITS.file);
  if (file && "real" in file && !result.isNew(file.real)) return;
  if (!file) return;
  const text = "bytes" in file ? decodeText(file.bytes) : "";
  const { body, problem, folders } = await expandImports(text, { source, root, limit: LIMITS.file });
  for (const folder of folders) result.watched.add(folder);
  // If the file is too long, only its beginning is used (specification, "Limits").
  const fields = file.status === "ok" && problem !== "" ? { body, error: problem } : { body };
  result.add("instruction_file", source, file, () => fields, true);
};

const readMcpConfig = async (result: ScanResult, root: string, source: string): Promise<void> => {
  const file = await readContextFile(source, root, LIMITS.file);
  if (file?.status === "ok" && !result.isNew(file.real)) return;
  if (!file) return;
  result.add("mcp_config", source, file, (text) => {
    try {
      JSON.parse(text);
    } catch {
      return { status: "invalid", error: "is not JSON" };
    }
    result.configs.push({ folder: root, source, text });
    return {};
  });
};

const scanSkills = async (result: ScanResult, root: string, skillsFolder: string): Promise<void> => {
  const entries = await readdir(skillsFolder).catch(() => []);
  if (entries.length > 0) result.watched.add(skillsFolder);
  for (const name of entries.sort()) {
    const folder = join(skillsFolder, name);
    const file = await readContextFile(join(folder, "SKILL.md"), root, LIMITS.file);
    if (!file || (file.status === "ok" && !result.isNew(file.real))) continue;
    result.watched.add(folder);
    result.add("skill", folder, file, (body) => {
      const head = parseSkillHead(body, basename(folder));
      if ("problem" in head) return { status: "invalid", error: `SKILL.md ${head.problem}` };
      if (result.skills.has(head.name))
        return { status: "excluded", error: `there is another skill named ${head.name}` };
      result.skills.add(head.name);
      return { body, skill_name: head.name, skill_description: head.description };
    });
  }
};

class ScanResult {
  readonly skills = new Set<string>();
  readonly configs: { folder: string; source: string; text: string }[] = [];
  readonly watched = new Set<string>();
  readonly #resources: StoredResource[] = [];
  readonly #roots = new Set<string>();
  readonly #files = new Set<string>();
  #bytes = 0;
  #leftOutCount = 0;

  /** Returns false if this root was already scanned. */
  begin(root: string): boolean {
    if (this.#roots.has(root)) return false;
    this.#roots.add(root);
    this.watched.add(root);
    return true;
  }

  /** Returns false for a file that was already added under another name. */
  isNew(real: string): boolean {
    if (this.#files.has(real)) return false;
    this.#files.add(real);
    return true;
  }

  /**
   * Adds a resource within the limits. `parse` derives the resource's fields from the text of a valid file; also from a truncated text if
   * `acceptsTruncated`.
   */
  add(
    kind: StoredResource["kind"],
    source: string,
    file: ContextFile,
    parse: (text: string) => Partial<StoredResource>,
    acceptsTruncated = false,
  ): void {
    if (this.#resources.length >= LIMITS.count) {
      this.#leftOutCount += 1;
      return;
    }
    if (file.status !== "ok" && !(file.status === "oversize" && acceptsTruncated)) {
      const { status, size, error } = file;
      this.#resources.push({ kind, source, status, size_bytes: size, error });
      return;
    }
    const { status, error: problem } = file.status === "ok" ? { status: file.status, error: "" } : file;
    const read = file.bytes.byteLength;
    const size_bytes = file.status === "ok" ? read : file.size;
    if (this.#bytes + read > LIMITS.total) {
      const error = `together the files have more than ${LIMITS.total} bytes`;
      this.#resources.push({ kind, source, status: "excluded", size_bytes, error });
      return;
    }
    const fields = parse(decodeText(file.bytes));
    if ((fields.status ?? "ok") === "ok") this.#bytes += Math.max(read, Buffer.byteLength(fields.body ?? ""));
    this.#resources.push({ kind, source, status, size_bytes, error: problem, ...fields });
  }

  get result(): Scan {
    const error =
      this.#leftOutCount === 0 ? "" : `${this.#leftOutCount} more were left out: the maximum is ${LIMITS.count}`;
    return { resources: this.#resources, error, configs: this.configs, watched: [...this.watched] };
  }
}

/** Returns the folders of the cache that contain plugin skills. */
const findPlugins = async (cache: string): Promise<string[]> => {
  const plugins: string[] = [];
  const visit = async (folder: string, depth: number): Promise<void> => {
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    if (folders.some((name) => SKILL_FOLDERS.some((one) => one.startsWith(name)))) plugins.push(folder);
    else if (depth < MAX_PLUGIN_DEPTH) {
      for (const name of folders.sort()) if (plugins.length < MAX_PLUGINS) await visit(join(folder, name), depth + 1);
    }
  };
  await visit(cache, 0);
  return plugins.slice(0, MAX_PLUGINS);
};
