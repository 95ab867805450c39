// The server's interface for tools, on behalf of the chat's owner: templates and the chat's workspace. Implemented at the HTTP edge, where
// access is checked; the rules are the same as for the owner's own requests.
import type { ChatSecrets } from "./mask.ts";
import type { ToolResult } from "./result.ts";

export type WorkspaceInput = {
  readonly template_id: string;
  readonly name?: string | undefined;
  readonly parameters?: Readonly<Record<string, string>> | undefined;
  readonly preset_id?: string | undefined;
};

export interface ToolServices {
  /** True if the owner has access to the chat's workspace now: sharing can be revoked and users suspended. */
  canUseWorkspace(): Promise<boolean>;
  /** Returns the secrets that no result may contain. */
  loadSecrets(): Promise<ChatSecrets>;
  /** Returns why the chat's turn must not continue, as a sentence; undefined if it may. */
  findTurnRefusal(): Promise<string | undefined>;
  /** `page` starts at 1. */
  listTemplates(query: string, page: number): Promise<ToolResult>;
  readTemplate(id: string): Promise<ToolResult>;
  /** Creates a workspace and binds the chat to it; an existing one is returned unchanged. Waits until it is ready. */
  createWorkspace(input: WorkspaceInput, signal: AbortSignal): Promise<ToolResult>;
  startWorkspace(parameters: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ToolResult>;
  /** Starts the chat's stopped workspace for a call, if its template and owner allow it, and waits until it is ready. */
  wakeWorkspace(signal: AbortSignal): Promise<void>;
  stopWorkspace(signal: AbortSignal): Promise<ToolResult>;
  /** Returns one sentence for the model that explains how to reconnect a disconnected agent. */
  describeRestore(): Promise<string>;
  /** Stores bytes as a file of the chat and returns its ID; idempotent per call. */
  storeFile(file: StoredFile): Promise<string>;
  /** Same for bytes of any type that users may upload; 400 for others. */
  attachFile(
    name: string,
    bytes: Uint8Array,
    number?: number,
  ): Promise<{ readonly file_id: string; readonly media_type: string }>;
}

/** `number` counts the files of one call, starting at 0, the default. */
export type StoredFile = {
  readonly name: string;
  readonly media_type: string;
  readonly bytes: Uint8Array;
  readonly number?: number;
};

/** The owner, location and call of a request. */
export type ToolServicesFor = {
  readonly chat_id: string;
  readonly owner_id: string;
  readonly organization_id: string;
  readonly workspace_id: string | null;
  /** As in `ToolContext`. */
  readonly run_id: string;
};
