// Writes the configuration with which Codex calls the AI gateway without signing in. Unlike other coding agents, Codex does not read the
// gateway's address from its environment.
import { linkSync, lstatSync, mkdirSync, mkdtempSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { log } from "#base/log.ts";
import { isWorkspaceToken } from "#base/secrets/workspace-token.ts";
import { readRegularFile } from "#base/system/regular-file.ts";
import type { Environment } from "./environment.ts";

/** A file that Slipway wrote is much smaller. */
const MAX_CONFIG_BYTES = 64 * 1024;

const toCodexConfig = (
  base_url: string,
): string => `# Written by Slipway: Codex calls the models of this workspace without a sign-in.
# Slipway no longer touches this file once you change it.
model_provider = "slipway"

[model_providers.slipway]
name = "Slipway"
base_url = ${JSON.stringify(base_url)}
env_key = "OPENAI_API_KEY"
wire_api = "responses"
`;

/** Returns true if Slipway wrote this text, for any address. */
const isOurs = (text: string): boolean => {
  const base_url = /^base_url = "([^"\\]*)"$/m.exec(text)?.[1];
  return base_url !== undefined && text === toCodexConfig(base_url);
};

/**
 * Writes, updates or removes Codex's configuration to match the workspace's variables. Removes it when the gateway is no longer offered. A
 * file that a person wrote or changed is left alone. Never throws.
 */
export const writeCodexConfig = (variables: Environment): void => {
  const { HOME = homedir(), CODEX_HOME, OPENAI_BASE_URL, OPENAI_API_KEY = "" } = variables;
  const path = join(CODEX_HOME || join(HOME, ".codex"), "config.toml");
  const isOffered = OPENAI_BASE_URL !== undefined && isWorkspaceToken(OPENAI_API_KEY);
  try {
    const existing = readOwnConfig(path);
    if (existing === "another's") return;
    if (isOffered) replaceConfig(path, toCodexConfig(OPENAI_BASE_URL), existing);
    else if (existing !== undefined) unlinkSync(path);
  } catch (error) {
    log("daemon").warn("the configuration of Codex in {path} cannot be written: {error}", { path, error });
  }
};

/** Returns the text if Slipway wrote it, `another's` for any other file, and undefined if there is no file. */
const readOwnConfig = (path: string): string | "another's" | undefined => {
  try {
    const stats = lstatSync(path);
    if (!stats.isFile() || stats.size > MAX_CONFIG_BYTES) return "another's";
    const text = readRegularFile(path, MAX_CONFIG_BYTES).toString("utf8");
    return isOurs(text) ? text : "another's";
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code === "ENOENT") return undefined;
    throw error;
  }
};

/** Writes the file atomically, and does not overwrite one that was created in the meantime. */
const replaceConfig = (path: string, text: string, existing: string | undefined): void => {
  if (existing === text) return;
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const draftFolder = mkdtempSync(join(folder, ".slipway-"));
  try {
    const file = join(draftFolder, "config.toml");
    writeFileSync(file, text, { mode: 0o600 });
    if (existing === undefined) linkSync(file, path);
    else renameSync(file, path);
  } finally {
    rmSync(draftFolder, { recursive: true, force: true });
  }
};
