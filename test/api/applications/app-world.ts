// A workspace with running apps: all callers (shared-workspace.ts), a connected daemon, and a real program that it reaches over loopback.
// Requests name the host of an app in their Host header.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Static } from "@sinclair/typebox";
import { type Clock, systemClock } from "#base/clock.ts";
import type { ManifestApp } from "#schema/templates/manifest.ts";
import { ECHO } from "#test/support/workspaces.ts";
import { type Daemon, startAgentProcess } from "../agents/reach.ts";
import { openSharedWorkspace } from "../workspaces/shared-workspace.ts";

const PROGRAM = fileURLToPath(new URL("./app-program.ts", import.meta.url));
export const SUFFIX = "apps.example.test";

export type AppProcess = AsyncDisposable & { readonly port: number; readonly process: Bun.Subprocess };

/** Starts the app program with these arguments: a port and, for TLS, a certificate and a key. */
export const startApp = async (args: readonly string[] = ["0"]): Promise<AppProcess> => {
  const child = Bun.spawn([process.execPath, "--no-env-file", PROGRAM, ...args], { stdout: "pipe", stderr: "inherit" });
  const reader = child.stdout.getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the app ended: ${text}`);
    text += new TextDecoder().decode(value);
  }
  return {
    port: Number(/listening on (\d+)/.exec(text)?.[1]),
    process: child,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
};

export type AppRequestInit = Omit<RequestInit, "headers"> & {
  token?: string | undefined;
  headers?: Record<string, string>;
};

type Options = {
  apps?: (port: number) => Static<typeof ManifestApp>[];
  env?: Record<string, string>;
  /** Whether the server has a wildcard host for apps. */
  hasWildcard?: boolean;
  clock?: Clock;
};

/** The request as the app received it. */
export type Echo = { method: string; path: string; headers: Record<string, string> };

export const startAppWorld = async ({
  apps = () => [],
  env,
  hasWildcard = true,
  clock = systemClock,
}: Options = {}) => {
  const app = await startApp();
  const agents = [{ name: "dev", apps: apps(app.port) }];
  const shared = await openSharedWorkspace({
    clock,
    manifest: { ...ECHO, resources: [{ name: "main", agents }] },
    env: hasWildcard ? { SLIPWAY_WILDCARD_ACCESS_URL: `*.${SUFFIX}`, ...env } : (env ?? {}),
  });
  const { server, clients, workspace } = shared;
  const agent_id = workspace.latest_build.resources[0]?.agents[0]?.id as string;
  const home = mkdtempSync(join(tmpdir(), "slipway-home-"));
  const daemon: Daemon = await startAgentProcess(server, { agent_id, agent_token: shared.token }, home);
  const host = (name: string): string => `${name}--dev--dev--ada.${SUFFIX}`;
  const get = (path: string, { token, headers, ...init }: AppRequestInit = {}): Promise<Response> =>
    fetch(new URL(path, server.url), {
      redirect: "manual",
      ...init,
      headers: { ...(token ? { "Service-Session-Token": token } : {}), ...headers },
    });
  return {
    shared,
    server,
    daemon,
    app,
    host,
    agent_id,
    owner: clients.owner,
    token: clients.owner.token as string,
    /** Returns the path of an app below the access URL: `/@ada/dev.dev/apps/{app}{suffix}`. */
    path: (name: string, suffix = "/"): string => `/@ada/dev.dev/apps/${name}${suffix}`,
    /** Requests a path below the access URL without following redirects. */
    get,
    /** Sends a request to an app's own host. */
    at: (name: string, path: string, init: AppRequestInit = {}): Promise<Response> =>
      get(path, { ...init, headers: { ...init.headers, host: host(name) } }),
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await daemon[Symbol.asyncDispose]();
      await shared[Symbol.asyncDispose]();
      rmSync(home, { recursive: true, force: true });
    },
  };
};
