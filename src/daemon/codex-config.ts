// The configuration with which Codex calls the AI gateway without a sign-in: unlike other agents it reads no address from its environment.
import {
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { log } from "#base/log.ts";
import { isWorkspaceToken } from "#base/secrets/workspace-token.ts";
import type { Environment } from "./environment.ts";

const configFor = (
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

/** Whether a text is what Slipway has written, for whatever address. */
const isOurs = (text: string): boolean => {
  const base_url = /^base_url = "([^"\\]*)"$/m.exec(text)?.[1];
  return base_url !== undefined && text === configFor(base_url);
};

/**
 * Makes Codex's configuration that of a workspace with these variables: writes it where there is none, keeps its own up to date and removes it
 * where the gateway is no longer offered. A file that somebody has written or changed stays as it is. Never throws.
 */
export const writeCodexConfig = (variables: Environment): void => {
  const { HOME = homedir(), CODEX_HOME, OPENAI_BASE_URL, OPENAI_API_KEY = "" } = variables;
  const path = join(CODEX_HOME || join(HOME, ".codex"), "config.toml");
  const isOffered = OPENAI_BASE_URL !== undefined && isWorkspaceToken(OPENAI_API_KEY);
  try {
    const found = readOwn(path);
    if (found === "another's") return;
    if (isOffered) replace(path, configFor(OPENAI_BASE_URL), found);
    else if (found !== undefined) unlinkSync(path);
  } catch (error) {
    log("daemon").warn("the configuration of Codex in {path} cannot be written: {error}", { path, error });
  }
};

/** Returns what Slipway has written there; undefined: nothing is there. */
const readOwn = (path: string): string | "another's" | undefined => {
  try {
    if (!lstatSync(path).isFile()) return "another's";
    const text = readFileSync(path, "utf8");
    return isOurs(text) ? text : "another's";
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code === "ENOENT") return undefined;
    throw error;
  }
};

/** Whole or not at all; a file that somebody makes in the meantime stays. */
const replace = (path: string, text: string, found: string | undefined): void => {
  if (found === text) return;
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const alongside = mkdtempSync(join(folder, ".slipway-"));
  try {
    const file = join(alongside, "config.toml");
    writeFileSync(file, text, { mode: 0o600 });
    if (found === undefined) linkSync(file, path);
    else renameSync(file, path);
  } finally {
    rmSync(alongside, { recursive: true, force: true });
  }
};
