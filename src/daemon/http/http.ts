// The daemon's HTTP API (facts/wire 4.1), on a socket that only this user can open and that the server reaches as port 4 of the tunnel
// (rules PT-4 to PT-7). Acts as the workspace's user and does not authenticate requests.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Static, TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { Clock } from "#base/clock.ts";
import { AppError, invalid, invalidField, STATUS } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { CallMcpTool } from "#schema/agents/agent-context.ts";
import {
  type EditedFiles,
  EditFiles,
  ListDirectory,
  PreviewFiles,
  type ProcessLimits,
  RenewToken,
  SignalProcess,
  StartProcess,
} from "#schema/agents/agent-files.ts";
import {
  Checkpoint,
  type CheckpointTaken,
  CopyCheckpoints,
  ForgetCheckpoints,
  TakeCheckpoint,
} from "#schema/agents/checkpoint.ts";
import { DesktopAction } from "#schema/agents/desktop-action.ts";
import { TouchedFiles } from "#schema/agents/git-message.ts";
import type { ListeningPort } from "#schema/workspaces/listening-port.ts";
import type { Checkpoints } from "../checkpoints/checkpoints.ts";
import { createCodingAgentRoutes } from "../coding-agents/http.ts";
import type { CodingAgentPrograms } from "../coding-agents/programs.ts";
import type { Containers } from "../containers/containers.ts";
import { createContainerRoutes } from "../containers/http.ts";
import type { WorkspaceContext } from "../context/context.ts";
import { listSkillFiles, readSkillFile } from "../context/http.ts";
import type { WorkspaceMcp } from "../context/mcp.ts";
import type { Desktop } from "../desktop/desktop.ts";
import { createDesktopRoutes } from "../desktop/http.ts";
import { createGitRoutes, parseChats } from "../git/http.ts";
import type { GitWatches } from "../git/watch.ts";
import { createHookRoutes } from "../hooks/http.ts";
import type { HookPrograms } from "../hooks/run.ts";
import { OnceByName } from "../once.ts";
import { canRestrictWrites } from "../sandbox/landlock.ts";
import { createDebugRoutes, type DebugOptions } from "./debug.ts";
import {
  editFiles,
  listDirectory,
  MAX_FILE_BYTES,
  previewEdits,
  previewWrite,
  readFile,
  readFileLines,
  resolvePath,
  uploadFile,
  writeFile,
} from "./files.ts";
import type { Processes } from "./processes.ts";
import { resolveSimilarPath } from "./similar-path.ts";
import { handledSockets } from "./sockets.ts";

/** Used if the server is too old to send a timeout. */
const MCP_CALL_TIMEOUT_MS = 60_000;

export type HttpApiOptions = {
  ports(): ListeningPort[];
  processes: Processes;
  codingAgents: CodingAgentPrograms;
  containers: Containers;
  git: GitWatches;
  hooks: HookPrograms;
  desktop: Desktop;
  clock: Clock;
  checkpoints: Checkpoints;
  context: Pick<WorkspaceContext, "current">;
  mcp: Pick<WorkspaceMcp, "call">;
  debug: DebugOptions;
  /** Resolves a caller's path to an absolute one. */
  resolve(path: string): string;
  /** Returns the current folder of this terminal's shell. */
  findTerminalFolder(terminal: string): string | undefined;
  /** Ends the daemon, which runs its stop scripts first. Called when the workspace is being stopped. */
  shutDown(): void;
  /** Makes the daemon load the owner's secrets again. Called when they have changed. */
  renewSecrets(): void;
  /** Replaces the agent's token by a new one. Returns the sub-agents that this process created. */
  renewToken(token: string): readonly string[];
};

export type HttpApi = { readonly socket: string; close(): Promise<void> };

const NO_MAXIMUM = Number.MAX_SAFE_INTEGER;

/** Listens on a Unix socket in a private folder that only this user can read. */
export const serveHttpApi = (options: HttpApiOptions): HttpApi => {
  const folder = mkdtempSync(join(tmpdir(), "slipway-agent-"));
  const socket = join(folder, "api");
  const server = Bun.serve({
    unix: socket,
    maxRequestBodySize: MAX_FILE_BYTES,
    // The server decides how long to keep a connection.
    idleTimeout: 0,
    routes: {
      ...createRoutes(options),
      ...createContainerRoutes(options.containers),
      ...createGitRoutes(options.git),
      ...createDebugRoutes(options.debug),
      ...createHookRoutes(options, readBody),
      ...createCodingAgentRoutes(options.codingAgents, readBody, parseNumber),
      ...createDesktopRoutes({ ...options, readAction }),
    },
    websocket: handledSockets,
    fetch: () => toErrorResponse(new AppError("not_found", "Route not found.")),
    error: toErrorResponse,
  } as never);
  return {
    socket,
    async close() {
      await server.stop(true);
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

type RoutedRequest = Request & { params: Record<string, string> };

const createRoutes = ({
  ports,
  processes,
  git,
  checkpoints,
  codingAgents,
  context,
  mcp,
  resolve,
  findTerminalFolder,
  ...notices
}: HttpApiOptions) => {
  const editResults = new OnceByName<EditedFiles>();
  const getPath = (request: Request): string => resolve(getQuery(request, "path") || failMissing("path"));
  /** A chat's repositories are derived from the paths that its tools touch. */
  const recordAccess = (request: Request, paths: readonly string[], changed: boolean): void => {
    const chats = parseChats(request);
    if (chats.length > 0) void git.recordAccess(chats, paths, changed);
  };
  return {
    "/api/v0/shutdown": {
      POST: () => {
        notices.shutDown();
        return Response.json({ message: "The daemon ends." }, { status: 202 });
      },
    },
    "/api/v0/renew-secrets": {
      POST: () => {
        notices.renewSecrets();
        return Response.json({ message: "The secrets are asked for again." }, { status: 202 });
      },
    },
    "/api/v0/renew-token": {
      POST: async (request: Request) => {
        const sub_agents = notices.renewToken((await readBody(request, RenewToken)).token);
        return Response.json({ message: "The token is used from now on.", sub_agents });
      },
    },
    "/api/v0/context": { GET: () => Response.json(context.current) },
    "/api/v0/context/skill-files": {
      GET: async (request: Request) => Response.json(await listSkillFiles(getPath(request))),
    },
    "/api/v0/context/skill-file": {
      GET: async (request: Request) =>
        Response.json(await readSkillFile(getPath(request), getQuery(request, "file") || failMissing("file"))),
    },
    "/api/v0/mcp/call-tool": {
      POST: async (request: Request) => {
        const requested = await readBody(request, CallMcpTool);
        const {
          server,
          tool,
          arguments: args,
          silence_ms = MCP_CALL_TIMEOUT_MS,
          total_ms = MCP_CALL_TIMEOUT_MS,
        } = requested;
        return Response.json(await mcp.call(server, tool, args, request.signal, { silence_ms, total_ms }));
      },
    },
    "/api/v0/listening-ports": { GET: () => Response.json({ ports: ports() }) },
    "/api/v0/list-directory": {
      POST: async (request: Request) =>
        Response.json(await listDirectory(resolve((await readBody(request, ListDirectory)).path))),
    },
    "/api/v0/resolve-path": {
      GET: async (request: Request) =>
        Response.json({ resolved_path: await resolvePath(await resolveSimilarPath(getPath(request))) }),
    },
    "/api/v0/read-file": {
      GET: async (request: Request) => {
        const file = await resolveSimilarPath(getPath(request));
        recordAccess(request, [file], false);
        return readFile(file, parseNumber(request, "offset", 0), parseNumber(request, "limit", NO_MAXIMUM));
      },
    },
    "/api/v0/read-file-lines": {
      GET: async (request: Request) => {
        const offset = Math.max(1, parseNumber(request, "offset", 1));
        const file = await resolveSimilarPath(getPath(request));
        recordAccess(request, [file], false);
        return Response.json(await readFileLines(file, offset, parseNumber(request, "limit", 2_000)));
      },
    },
    "/api/v0/write-file": {
      POST: async (request: Request) => {
        await writeFile(getPath(request), await request.bytes());
        recordAccess(request, [getPath(request)], true);
        return Response.json({ message: "The file was written." });
      },
    },
    "/api/v0/upload": {
      POST: async (request: Request) => {
        const folder = findTerminalFolder(getQuery(request, "terminal")) ?? resolve(getQuery(request, "folder") || ".");
        const file = join(folder, basename(getQuery(request, "name") || failMissing("name")));
        await uploadFile(file, await request.bytes(), getQuery(request, "replace") === "true");
        return Response.json({ path: file });
      },
    },
    "/api/v0/edit-files": {
      POST: async (request: Request) => {
        const { id, files } = await readBody(request, EditFiles);
        const placed = await Promise.all(
          files.map(async ({ path, edits }) => {
            return { path, edits, absolute_path: await resolveSimilarPath(resolve(path)) };
          }),
        );
        const edit = () => editFiles(placed);
        const edited = await (id === undefined ? edit() : editResults.run(id, edit));
        recordAccess(
          request,
          placed.map(({ absolute_path }) => absolute_path),
          true,
        );
        return Response.json(edited);
      },
    },
    "/api/v0/preview-files": {
      POST: async (request: Request) => {
        const { files = [], write } = await readBody(request, PreviewFiles);
        const edits = files.map((one) => ({ ...one, absolute_path: resolve(one.path) }));
        const previewed = write ? previewWrite(write.path, resolve(write.path), write.content) : previewEdits(edits);
        return Response.json(await previewed);
      },
    },
    "/api/v0/git/touched": {
      POST: async (request: Request) => {
        const { paths, commands } = await readBody(request, TouchedFiles);
        recordAccess(request, paths.map(resolve), true);
        const chats = parseChats(request);
        for (const { command, directory = "." } of chats.length > 0 ? commands : []) {
          void git.recordCommand(chats, command, resolve(directory), true);
        }
        return Response.json({ message: "The repositories are looked at." });
      },
    },
    "/api/v0/checkpoints": {
      POST: async (request: Request) => {
        const { problems = [], chats } = await checkpoints.take(await readBody(request, TakeCheckpoint));
        const message = problems.length === 0 ? "The files as they are now are kept." : "Not all files are kept.";
        const kept = chats && [...new Set([...chats, ...codingAgents.listChats()])];
        const taken: CheckpointTaken = { message, problems, ...(kept ? { chats: kept } : {}) };
        return Response.json(taken);
      },
    },
    "/api/v0/checkpoints/copy": {
      POST: async (request: Request) => {
        await checkpoints.copy(await readBody(request, CopyCheckpoints));
        return Response.json({ message: "The copy has the checkpoints." });
      },
    },
    "/api/v0/checkpoints/forget": {
      POST: async (request: Request) => {
        const { chat_ids } = await readBody(request, ForgetCheckpoints);
        await checkpoints.removeChats(chat_ids);
        return Response.json({ message: "Their checkpoints are forgotten." });
      },
    },
    "/api/v0/checkpoints/changes": {
      POST: async (request: Request) =>
        Response.json(await checkpoints.listChanges(await readBody(request, Checkpoint))),
    },
    "/api/v0/checkpoints/restore": {
      POST: async (request: Request) => Response.json(await checkpoints.restore(await readBody(request, Checkpoint))),
    },
    "/api/v0/processes/start": {
      POST: async (request: Request) => {
        const requested = await readBody(request, StartProcess);
        const directory = resolve(requested.directory ?? ".");
        const chats = parseChats(request);
        const recordCommand = (ended: boolean): void => {
          if (chats.length > 0) void git.recordCommand(chats, requested.command, directory, ended);
        };
        const writable_only = requested.writable_only?.map(resolve);
        const limits = writable_only ? { writable_only } : {};
        const started = processes.start({ ...requested, ...limits }, directory, () => recordCommand(true));
        recordCommand(false);
        return Response.json(started);
      },
    },
    "/api/v0/processes/limits": {
      GET: () => Response.json({ can_hold_back: canRestrictWrites() } satisfies ProcessLimits),
    },
    "/api/v0/processes/list": { GET: () => Response.json({ processes: processes.list() }) },
    "/api/v0/processes/:id/output": {
      GET: async (request: RoutedRequest) => {
        const query = {
          after: parseNumber(request, "after", 0),
          wait_ms: parseNumber(request, "wait_ms", 0),
          limit: parseNumber(request, "limit", NO_MAXIMUM),
          follow: getQuery(request, "follow") === "1",
        };
        return Response.json(await processes.output(request.params.id ?? "", query));
      },
    },
    "/api/v0/processes/:id/signal": {
      POST: async (request: RoutedRequest) => {
        processes.signal(request.params.id ?? "", await readBody(request, SignalProcess));
        return Response.json({ message: "The signal was sent." });
      },
    },
  };
};

const readAction = (request: Request) => readBody(request, DesktopAction);

const failMissing = (name: string): never => {
  throw invalidField(name, "is missing");
};

const getQuery = (request: Request, name: string): string => new URL(request.url).searchParams.get(name) ?? "";

const parseNumber = (request: Request, name: string, otherwise: number): number => {
  const text = getQuery(request, name);
  if (text === "") return otherwise;
  if (!/^\d{1,15}$/.test(text)) throw invalidField(name, "must be a whole number");
  return Number(text);
};

const readBody = async <S extends TSchema>(request: Request, schema: S): Promise<Static<S>> => {
  const body: unknown = await request.json().catch(() => {
    throw invalid("The body is not JSON.");
  });
  if (Value.Check(schema, body)) return body;
  const errors = [...Value.Errors(schema, body)].slice(0, 20);
  const validations = errors.map(({ path, message }) => ({
    field: path.slice(1).replaceAll("/", "."),
    detail: message,
  }));
  throw invalid("Validation failed.", validations);
};

const toErrorResponse = (error: Error): Response => {
  const appError = error instanceof AppError ? error : new AppError("internal", "An internal error occurred.");
  if (appError.kind === "internal") log("daemon").error("a request failed: {error}", { error });
  const { message, detail, validations } = appError;
  return Response.json({ message, detail, validations }, { status: STATUS[appError.kind] });
};
