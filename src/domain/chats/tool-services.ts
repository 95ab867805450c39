// Server operations for a chat's tools, run on behalf of the chat's owner with their current access: templates and the chat's workspace
// (facts/chats 5.1). Constructed in src/context/context.ts.

import { AppError } from "#base/errors.ts";
import { ANY_TYPE } from "#base/file-signature.ts";
import { deriveUuid } from "#base/ids.ts";
import { pause } from "#base/retry.ts";
import { trimEnd } from "#base/text/trim.ts";
import { findChat, findChatAccessRow } from "#db/chats/chats.ts";
import { findChatFile, insertChatFile, linkChatFiles } from "#db/chats/files.ts";
import { findTemplateEvenDeleted } from "#db/templates/templates.ts";
import { findWorkspaceAccessRow, findWorkspaceByName } from "#db/workspaces/workspaces.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { toPresetId } from "#src/provisioners/presets.ts";
import type { ChatSecrets } from "#src/tools/mask.ts";
import type { ToolResult } from "#src/tools/result.ts";
import type { StoredFile, ToolServices, ToolServicesFor, WorkspaceInput } from "#src/tools/services.ts";
import { ToolError } from "#src/tools/tool.ts";
import { canUseTemplate, canUseWorkspace } from "../access.ts";
import { createBuild } from "../builds/create.ts";
import { loadVersion, requireUsableManifest } from "../builds/new-build.ts";
import { wakeWorkspace } from "../builds/wake.ts";
import type { DomainContext } from "../context.ts";
import { loadTemplate } from "../templates/find.ts";
import { searchTemplates } from "../templates/search.ts";
import { loadCaller } from "../users/as-caller.ts";
import { findUserInPath } from "../users/find.ts";
import { readGitSshKey } from "../users/git-ssh-key.ts";
import { createWorkspace } from "../workspaces/create.ts";
import { readWorkspace } from "../workspaces/present.ts";
import { checkType } from "./file-type.ts";
import { loadKnownSecrets } from "./known-secrets.ts";
import { findTurnRefusal } from "./refusal.ts";
import { shouldAskIn } from "./starting-permissions.ts";

const PAGE_SIZE = 10;
/** Timeout for a tool that waits for a workspace. */
const WAIT_TIMEOUT_MS = 20 * 60_000;
const POLL_INTERVAL_MS = 250;
/** Time for a provisioner to restart a dead agent before the workspace is rebuilt. */
const RESTART_TIMEOUT_MS = 15_000;
const TRANSITIONAL_STATUSES: ReadonlySet<string> = new Set([
  "pending",
  "starting",
  "stopping",
  "canceling",
  "deleting",
]);
const STARTING_STATES: ReadonlySet<string> = new Set(["created", "starting"]);

export class ChatToolServices implements ToolServices {
  readonly #ctx: DomainContext;
  readonly #scope: ToolServicesFor;

  constructor(ctx: DomainContext, scope: ToolServicesFor) {
    this.#ctx = ctx;
    this.#scope = scope;
  }

  async canUseWorkspace(): Promise<boolean> {
    const { store } = this.#ctx;
    const id = this.#scope.workspace_id;
    const owner = await this.#loadOwner();
    const workspace = id === null ? undefined : await store.get(findWorkspaceAccessRow({ id }));
    return owner !== undefined && workspace !== undefined && canUseWorkspace(owner, workspace);
  }

  async loadSecrets(): Promise<ChatSecrets> {
    const id = this.#scope.workspace_id;
    const workspace = id === null ? undefined : await this.#ctx.store.get(findWorkspaceAccessRow({ id }));
    // The key pair is created on first use, which may be in a tool's call: its first output must be masked, too.
    if (workspace) await readGitSshKey(this.#ctx, workspace.owner_id).catch(ignoreDeletedUser);
    return loadKnownSecrets(this.#ctx, this.#scope);
  }

  findTurnRefusal(): Promise<string | undefined> {
    return findTurnRefusal(this.#ctx, this.#scope.chat_id);
  }

  async listTemplates(query: string, page: number): Promise<ToolResult> {
    const rows = await searchTemplates(this.#ctx, await this.#loadCaller(), "", this.#scope.organization_id);
    const searched = query.trim().toLowerCase();
    const matching = rows.filter(
      ({ template: { name, display_name, description, deprecation_message } }) =>
        deprecation_message === "" &&
        [name, display_name, description].some((text) => text.toLowerCase().includes(searched)),
    );
    const [first] = [...matching].sort((a, b) => b.use.active_user_count - a.use.active_user_count);
    const shown = matching.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
    return {
      templates: shown.map(({ template: { id, name, display_name, description }, use }) => ({
        id,
        name,
        display_name,
        description,
        active_user_count: use.active_user_count,
      })),
      page,
      total_pages: Math.ceil(matching.length / PAGE_SIZE),
      count: matching.length,
      ...(first ? { recommended_template_id: first.template.id } : {}),
      next_step: first
        ? "Read the one that fits with read_template, then use create_workspace."
        : "No template fits. Tell the user.",
    };
  }

  async readTemplate(id: string): Promise<ToolResult> {
    const { store } = this.#ctx;
    const caller = await this.#loadCaller();
    const { template } = await loadTemplate(this.#ctx, id, caller);
    const version = canUseTemplate(caller, template) ? await loadVersion(store, template.active_version_id) : undefined;
    if (!version) throw new ToolError("There is no such template.");
    const manifest = requireUsableManifest(version, "invalid");
    return {
      id: template.id,
      name: template.name,
      display_name: template.display_name,
      description: template.description,
      parameters: (manifest.parameters ?? []).map((one) => ({
        name: one.name,
        description: one.description ?? "",
        type: one.type ?? "string",
        required: one.default === undefined && one.defaults === undefined,
        mutable: one.mutable ?? false,
        ...(one.default === undefined ? {} : { default: String(one.default) }),
        ...(one.options ? { options: one.options.map(({ name, value }) => ({ name, value })) } : {}),
      })),
      presets: (manifest.presets ?? []).map((preset) => ({
        id: toPresetId(version.row.id, preset.name),
        name: preset.name,
        description: preset.description ?? "",
        parameters: preset.parameters,
      })),
    };
  }

  async createWorkspace(input: WorkspaceInput, signal: AbortSignal): Promise<ToolResult> {
    const { store, chats } = this.#ctx;
    const caller = await this.#loadCaller();
    const boundWorkspace = this.#scope.workspace_id === null ? undefined : await this.#loadWorkspace(caller);
    if (boundWorkspace && boundWorkspace.latest_build.status !== "deleted") {
      return { ...(await this.#waitUntilReady(boundWorkspace.id, caller, signal)), created: false, existing: true };
    }
    const { template } = await loadTemplate(this.#ctx, input.template_id, caller);
    if (template.organization_id !== this.#scope.organization_id) {
      throw new ToolError("The template belongs to another organization than this chat.");
    }
    // Derived from the call, so that a retry after a crash finds the same workspace.
    const name = input.name ?? `${trimEnd(template.name.slice(0, 20), "-")}-${this.#scope.run_id.slice(0, 6)}`;
    const id = await this.#findOrCreate({ ...input, name }, caller);
    const workspace = await store.get(findWorkspaceAccessRow({ id }));
    const chat = await store.get(findChat({ id: this.#scope.chat_id }));
    const asks = chat !== undefined && (await shouldAskIn(store, chat, id));
    await chats.ask(this.#scope.chat_id, "change", { patch: { workspace_id: id }, asks, pin: null });
    return { ...(await this.#waitUntilReady(id, caller, signal)), created: true, build_id: workspace?.latest_build_id };
  }

  async startWorkspace(parameters: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ToolResult> {
    const caller = await this.#loadCaller();
    const workspace = await this.#waitUntilSettled(caller, signal);
    const isUnchanged = workspace.latest_build.status === "running" && Object.keys(parameters).length === 0;
    const isRunning = isUnchanged && (await this.#isAliveAfterRestart(workspace, caller, signal));
    if (!isRunning) {
      const rich_parameter_values = toParameterValues(parameters);
      const body = { transition: "start", rich_parameter_values } as const;
      await createBuild(this.#ctx, workspace.id, body, caller, { isOnBehalf: true });
    }
    const rebuilt =
      isUnchanged && !isRunning ? { rebuilt: true, reason: "The workspace's agent was not running." } : {};
    return { started: true, ...rebuilt, ...(await this.#waitUntilReady(workspace.id, caller, signal)) };
  }

  async wakeWorkspace(signal: AbortSignal): Promise<void> {
    const caller = await this.#loadCaller();
    const { id, name } = await this.#waitUntilSettled(caller, signal);
    try {
      const { state } = await wakeWorkspace(this.#ctx, id, { caller });
      if (state !== "running" && state !== "starting") throw buildFailed(name, state);
    } catch (error) {
      if (!(error instanceof AppError) || error.kind === "internal") throw error;
      throw new ToolError(`${error.message} Call start_workspace if the user wants to start it.`);
    }
    await this.#waitUntilReady(id, caller, signal);
  }

  async stopWorkspace(signal: AbortSignal): Promise<ToolResult> {
    const caller = await this.#loadCaller();
    const workspace = await this.#waitUntilSettled(caller, signal);
    if (workspace.latest_build.status !== "stopped") {
      await createBuild(this.#ctx, workspace.id, { transition: "stop" }, caller);
    }
    const { name, latest_build } = await this.#waitUntilSettled(caller, signal);
    if (latest_build.status !== "stopped") throw buildFailed(name, latest_build.status);
    return { stopped: true, workspace_name: name };
  }

  async describeRestore(): Promise<string> {
    const { workspace_id } = this.#scope;
    const attempt = workspace_id === null ? undefined : await this.#getRestartAttempt(workspace_id);
    if (attempt === undefined) return "It does not restart automatically: start_workspace rebuilds the workspace.";
    return `Its process has ended and the server is starting it again (try ${attempt}): call again in a few seconds.`;
  }

  /** Returns the number of the provisioner's attempt to restart a dead agent; undefined if it is not restarting it. */
  async #getRestartAttempt(workspace_id: string): Promise<number | undefined> {
    const { store, provisioners } = this.#ctx;
    const workspace = await store.get(findWorkspaceAccessRow({ id: workspace_id }));
    const template = workspace && (await store.get(findTemplateEvenDeleted({ id: workspace.template_id })));
    return template && provisioners.get(template.provisioner)?.getRestartAttempt?.(workspace_id);
  }

  /** Returns whether the agent is alive. Waits a few seconds for one that the provisioner is restarting. */
  async #isAliveAfterRestart(workspace: Workspace, caller: UserCaller, signal: AbortSignal): Promise<boolean> {
    if (!isDead(workspace)) return true;
    if ((await this.#getRestartAttempt(workspace.id)) === undefined) return false;
    const deadline = this.#ctx.clock.monotonic() + RESTART_TIMEOUT_MS;
    const isDone = (one: Workspace): boolean => !isDead(one) || this.#ctx.clock.monotonic() > deadline;
    return !isDead(await this.#waitUntil(workspace.id, caller, signal, isDone));
  }

  async storeFile({ name, media_type, bytes, number = 0 }: StoredFile): Promise<string> {
    const { store, blobs, clock } = this.#ctx;
    const { chat_id, owner_id, organization_id, run_id } = this.#scope;
    const id = deriveUuid(number === 0 ? `file ${run_id}` : `file ${run_id} ${number}`);
    if (await store.get(findChatFile({ id }))) return id;
    const chat = await store.get(findChatAccessRow({ id: chat_id }));
    if (!chat) throw new ToolError("The chat no longer exists.");
    const { hash, size } = await blobs.put(asStream(bytes));
    const row = { id, organization_id, owner_id, hash, name, media_type, size, chat: null, created_at: clock.now() };
    await store.commit([insertChatFile(row), ...linkChatFiles(chat.key, [id], clock.now())]);
    return id;
  }

  async attachFile(name: string, bytes: Uint8Array, number = 0): Promise<{ file_id: string; media_type: string }> {
    const media_type = checkType(bytes, name, ANY_TYPE);
    return { file_id: await this.storeFile({ name, media_type, bytes, number }), media_type };
  }

  /** Returns the ID of the new workspace, or of the one created by an earlier run of this call. */
  async #findOrCreate({ name = "", ...input }: WorkspaceInput, caller: UserCaller): Promise<string> {
    const { store } = this.#ctx;
    const owner = await findUserInPath(store, "me", caller);
    const body = {
      name,
      template_id: input.template_id,
      rich_parameter_values: toParameterValues(input.parameters ?? {}),
      ...(input.preset_id === undefined ? {} : { template_version_preset_id: input.preset_id }),
    };
    try {
      return (await createWorkspace(this.#ctx, { caller, owner, body })).id;
    } catch (error) {
      const isTaken = error instanceof AppError && error.kind === "conflict";
      const existing = isTaken ? await store.get(findWorkspaceByName({ owner_id: owner.id, name })) : undefined;
      if (!existing || existing.deleted || !name.endsWith(this.#scope.run_id.slice(0, 6))) throw error;
      return existing.id;
    }
  }

  /** Waits until the workspace's agent is ready. Throws `ToolError` when its build fails. */
  async #waitUntilReady(id: string, caller: UserCaller, signal: AbortSignal): Promise<ToolResult> {
    const isReady = (workspace: Workspace): boolean => {
      const { status } = workspace.latest_build;
      if (TRANSITIONAL_STATUSES.has(status)) return false;
      const agent = getFirstAgent(workspace);
      return !agent || status !== "running" || !STARTING_STATES.has(agent.lifecycle_state);
    };
    const workspace = await this.#waitUntil(id, caller, signal, isReady);
    const { name, latest_build } = workspace;
    if (latest_build.status !== "running") throw buildFailed(name, latest_build.status);
    const agent = getFirstAgent(workspace);
    return {
      workspace_name: name,
      workspace_id: id,
      status: latest_build.status,
      ...(agent ? { agent_status: agent.status, agent_lifecycle: agent.lifecycle_state } : {}),
    };
  }

  /** Returns the chat's workspace once it has no active build. */
  async #waitUntilSettled(caller: UserCaller, signal: AbortSignal): Promise<Workspace> {
    const { id } = await this.#loadWorkspace(caller);
    return this.#waitUntil(id, caller, signal, ({ latest_build }) => !TRANSITIONAL_STATUSES.has(latest_build.status));
  }

  async #waitUntil(
    id: string,
    caller: UserCaller,
    signal: AbortSignal,
    isDone: (workspace: Workspace) => boolean,
  ): Promise<Workspace> {
    const { clock } = this.#ctx;
    const deadline = clock.monotonic() + WAIT_TIMEOUT_MS;
    for (;;) {
      const workspace = await readWorkspace(this.#ctx, id, caller);
      if (!workspace) throw new ToolError("The workspace no longer exists.");
      if (isDone(workspace)) return workspace;
      if (clock.monotonic() > deadline)
        throw new ToolError(`The workspace takes too long: ${workspace.latest_build.status}.`);
      await pause(clock, POLL_INTERVAL_MS);
      signal.throwIfAborted();
    }
  }

  async #loadWorkspace(caller: UserCaller): Promise<Workspace> {
    const id = this.#scope.workspace_id;
    if (id === null) throw new ToolError("This chat is not bound to a workspace.");
    const access = await this.#ctx.store.get(findWorkspaceAccessRow({ id }));
    const workspace =
      access && canUseWorkspace(caller, access) ? await readWorkspace(this.#ctx, id, caller) : undefined;
    if (!workspace) throw new ToolError("The workspace does not exist, or this chat may no longer use it.");
    return workspace;
  }

  async #loadCaller(): Promise<UserCaller> {
    const owner = await this.#loadOwner();
    if (owner) return owner;
    throw new ToolError("The account of this chat's owner is suspended or was deleted.");
  }

  #loadOwner(): Promise<UserCaller | undefined> {
    return loadCaller(this.#ctx.store, this.#scope.owner_id);
  }
}

const getFirstAgent = ({ latest_build }: Workspace) => latest_build.resources.flatMap(({ agents }) => agents)[0];

/** Returns whether the agent has disconnected, or has not connected in time. */
const isDead = (workspace: Workspace): boolean => {
  const status = getFirstAgent(workspace)?.status;
  return status === "disconnected" || status === "timeout";
};

async function* asStream(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

const toParameterValues = (parameters: Readonly<Record<string, string>>) =>
  Object.entries(parameters).map(([name, value]) => ({ name, value }));

const buildFailed = (name: string, status: string): ToolError =>
  new ToolError(`The build of the workspace "${name}" did not succeed: its status is ${status}.`);

const ignoreDeletedUser = (error: unknown): void => {
  if (!(error instanceof AppError) || error.kind !== "not_found") throw error;
};
