// The daemon's scan of instructions, skills and MCP configs on a real disk: the files that it finds, how it handles large files and links
// to other folders, and how it reports changes.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { listSkillFiles, readSkillFile } from "#src/daemon/context/http.ts";
import { findContextRoots, LIMITS, scanContext } from "#src/daemon/context/scan.ts";
import { parseSkillHead } from "#src/daemon/context/skill.ts";

let home: string;
beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "slipway-context-")));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const writeHomeFile = (path: string, text: string | Uint8Array): string => {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
};
const formatSkill = (name: string, description = "when asked"): string =>
  `---\nname: ${name}\ndescription: ${description}\n---\nDo it.\n`;
const scan = async (extra: string[] = []) =>
  scanContext(await findContextRoots({ directory: join(home, "work"), home, extra }));
const listResources = async (extra: string[] = []): Promise<string[]> =>
  (await scan(extra)).resources.map(({ kind, status, source }) => `${kind} ${status} ${source.slice(home.length + 1)}`);
const getFailure = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "",
    (error: Error & { validations?: { detail: string }[] }) => error.validations?.[0]?.detail ?? error.message,
  );

test("[CX-1] every root is searched for instructions, skills and MCP configs; a file with two names is used once", async () => {
  writeHomeFile("work/AGENTS.md", "one");
  symlinkSync("AGENTS.md", join(home, "work/CLAUDE.md"));
  writeHomeFile("work/deep/AGENTS.md", "not at the top");
  writeHomeFile("work/.mcp.json", '{"mcpServers":{}}');
  for (const folder of ["skills", ".agents/skills", ".claude/skills", ".codex/skills"]) {
    const name = `in-${folder.replaceAll(/\W/g, "")}`;
    writeHomeFile(`work/${folder}/${name}/SKILL.md`, formatSkill(name));
  }
  symlinkSync("../.agents/skills/in-agentsskills", join(home, "work/.claude/skills/same"));
  writeHomeFile(".slipway/.cursorrules", "rules");
  writeHomeFile(".slipway/skills/mine/SKILL.md", formatSkill("mine"));
  writeHomeFile(".claude/plugins/cache/market/plugin/1.0/skills/plugged/SKILL.md", formatSkill("plugged"));
  writeHomeFile("more/AGENTS.md", "more");
  expect(await listResources([join(home, "more"), join(home, "absent")])).toEqual([
    "instruction_file ok work/AGENTS.md",
    "mcp_config ok work/.mcp.json",
    "skill ok work/skills/in-skills",
    "skill ok work/.agents/skills/in-agentsskills",
    "skill ok work/.claude/skills/in-claudeskills",
    "skill ok work/.codex/skills/in-codexskills",
    "instruction_file ok .slipway/.cursorrules",
    "skill ok .slipway/skills/mine",
    "instruction_file ok more/AGENTS.md",
    "skill ok .claude/plugins/cache/market/plugin/1.0/skills/plugged",
  ]);
});

test("[CX-2] long instructions are truncated, other long files dropped, and files beyond the limits of size or number left out", async () => {
  writeHomeFile("work/AGENTS.md", "x".repeat(LIMITS.file));
  writeHomeFile("work/CLAUDE.md", `${"x".repeat(LIMITS.file - 1)}é and more`);
  symlinkSync("CLAUDE.md", join(home, "work/.cursorrules"));
  writeHomeFile("work/.mcp.json", "no json");
  writeHomeFile("work/skills/long/SKILL.md", formatSkill("long") + "x".repeat(LIMITS.file));
  const [exactFile, longFile, config, longSkill] = (await scan()).resources;
  expect(exactFile).toMatchObject({ status: "ok", size_bytes: LIMITS.file });
  const size_bytes = LIMITS.file + 10;
  expect(longFile).toMatchObject({ status: "oversize", size_bytes, error: `has ${size_bytes} bytes, more than 65536` });
  // The character at the limit is left out.
  expect(longFile?.body).toBe("x".repeat(LIMITS.file - 1));
  expect([longSkill?.status, longSkill?.body]).toEqual(["oversize", undefined]);
  rmSync(join(home, "work/skills"), { recursive: true });
  expect(config).toMatchObject({ status: "invalid", error: "is not JSON" });
  for (let i = 0; i < 505; i++) {
    const name = `s${String(i).padStart(3, "0")}`;
    writeHomeFile(`work/skills/${name}/SKILL.md`, formatSkill(name) + (i < 40 ? "x".repeat(60_000) : ""));
  }
  const { resources, error } = await scan();
  expect(resources).toHaveLength(LIMITS.count);
  expect(error).toBe("8 more were left out: the maximum is 500");
  expect(resources.filter(({ status }) => status === "excluded").length).toBeGreaterThan(5);
  const total = resources.reduce((sum, { body = "" }) => sum + Buffer.byteLength(body), 0);
  expect(total).toBeLessThanOrEqual(LIMITS.total);
});

test("[CX-3] a skill needs front matter with its folder's name and a description; a duplicate is left out", async () => {
  expect(parseSkillHead(formatSkill("good-one"), "good-one")).toEqual({ name: "good-one", description: "when asked" });
  expect(parseSkillHead(formatSkill("a", ">\n  two\n  lines").replaceAll("\n", "\r\n"), "a")).toMatchObject({
    name: "a",
  });
  const problems = [
    ["no front matter", "x"],
    ["---\nname: [\n---\n", "x"],
    ["---\n- a\n---\n", "x"],
    [formatSkill("Bad Name"), "Bad Name"],
    [formatSkill("one"), "two"],
    ["---\nname: x\n---\n", "x"],
    ["---\nname: x\ndescription: 3\n---\n", "x"],
  ] as const;
  for (const [text, folder] of problems) expect(parseSkillHead(text, folder)).toHaveProperty("problem");
  writeHomeFile("work/skills/twice/SKILL.md", formatSkill("twice"));
  writeHomeFile("work/.claude/skills/twice/SKILL.md", formatSkill("twice", "again"));
  writeHomeFile("work/skills/other/SKILL.md", formatSkill("elsewhere"));
  expect(await listResources()).toEqual([
    "skill invalid work/skills/other",
    "skill ok work/skills/twice",
    "skill excluded work/.claude/skills/twice",
  ]);
});

test("[CX-4] paths that lead out of their root are left out, and special files do not block the scan", async () => {
  const secret = writeHomeFile("secret/key", "secret");
  mkdirSync(join(home, "work/skills/leak"), { recursive: true });
  symlinkSync(secret, join(home, "work/AGENTS.md"));
  symlinkSync(secret, join(home, "work/skills/leak/SKILL.md"));
  symlinkSync(join(home, "secret"), join(home, "work/skills/away"));
  Bun.spawnSync(["mkfifo", join(home, "work/CLAUDE.md")]);
  symlinkSync("gone", join(home, "work/.cursorrules"));
  const { resources } = await scan();
  expect(JSON.stringify(resources)).not.toContain('"secret"');
  expect(resources.map(({ kind, status }) => `${kind} ${status}`)).toEqual([
    "instruction_file excluded",
    "instruction_file unreadable",
    "skill excluded",
  ]);
});

test("[CX-12] only files in a skill's folder can be read, despite paths and links to other folders, up to 512 KiB each", async () => {
  const folder = dirname(writeHomeFile("work/skills/s/SKILL.md", formatSkill("s")));
  writeHomeFile("work/skills/s/docs/a.md", "inside");
  writeHomeFile("work/skills/s/long.txt", "é".repeat(300_000));
  writeHomeFile("work/skills/s/binary", "a\0b");
  writeHomeFile("work/skills/sibling/x.md", "sibling");
  const secret = writeHomeFile("secret", "secret");
  symlinkSync(secret, join(folder, "link.md"));
  symlinkSync("docs/a.md", join(folder, "own.md"));
  expect(await listSkillFiles(folder)).toEqual({ files: ["binary", "docs/a.md", "long.txt"], truncated: false });
  expect(await readSkillFile(folder, "docs/a.md")).toEqual({ content: "inside", file_size: 6, truncated: false });
  expect((await readSkillFile(folder, "own.md")).content).toBe("inside");
  const long = await readSkillFile(folder, "long.txt");
  expect(long).toMatchObject({ file_size: 600_000, truncated: true });
  expect(long.content).toBe("é".repeat(262_144));
  for (const path of [
    "../sibling/x.md",
    "link.md",
    secret.replace("/", "../../../../../../../../"),
    "docs/../../sibling/x.md",
  ]) {
    expect([path, await getFailure(readSkillFile(folder, path))]).toEqual([path, "leads out of the skill's folder"]);
  }
  expect(await getFailure(readSkillFile(folder, "binary"))).toBe("is not a text file");
  expect(await getFailure(readSkillFile(folder, "docs"))).toBe("is not a regular file");
  expect(await getFailure(readSkillFile(folder, "absent"))).toBe("There is no such file in the skill.");
});

test("[CX-15] lines that import a file are replaced by its text, inside the folder and within limits", async () => {
  const instructions = [
    "# Ours",
    "@docs/style.md",
    "- @docs/more.md",
    "ask @docs/style.md or @somebody",
    "@unknown",
    "@../outside.md",
    "```",
    "@docs/style.md",
    "```",
  ];
  writeHomeFile("work/AGENTS.md", instructions.join("\n"));
  writeHomeFile("work/docs/style.md", "be brief\n@deep/own.md\n");
  writeHomeFile("work/docs/deep/own.md", "own\n@../style.md");
  writeHomeFile("work/docs/more.md", "more\n");
  writeHomeFile("outside.md", "secret");
  const [resource] = (await scan()).resources;
  expect(resource?.body).toBe(
    [
      ...["# Ours", "be brief", "own", "", "more", "ask @docs/style.md or @somebody", "@unknown", "@../outside.md"],
      ...["```", "@docs/style.md", "```"],
    ].join("\n"),
  );
  expect([resource?.status, resource?.error]).toEqual(["ok", "@../outside.md leads out of its folder"]);
  // Imported files are watched, and imports beyond the limit are left out.
  expect((await scan()).watched).toContain(join(home, "work/docs/deep"));
  writeHomeFile("work/docs/more.md", "x".repeat(LIMITS.file));
  const [large] = (await scan()).resources;
  expect(large?.error).toContain("@docs/more.md is left out: more than 65536 bytes in all");
  expect(large?.body).toContain("- @docs/more.md");
});

test("[CX-15] instructions in UTF-16 are read as text", async () => {
  const text = "Use tabs.\nBe brief.\n";
  const little = Buffer.from(text, "utf16le");
  const big = Buffer.from(little).swap16();
  for (const bytes of [
    Buffer.concat([Buffer.from([0xff, 0xfe]), little]),
    Buffer.concat([Buffer.from([0xfe, 0xff]), big]),
    little,
    big,
  ]) {
    writeHomeFile("work/AGENTS.md", bytes);
    expect((await scan()).resources[0]?.body).toBe(text);
  }
});
