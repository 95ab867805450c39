// What tools may ask of the server itself, in the name of the chat's owner: templates and the workspace of the chat. Implemented at the
// HTTP edge, where the rights of people are known; the rules are the same as for the owner's own requests.
import type { KnownSecrets } from "./mask.ts";
import type { ToolResult } from "./result.ts";

export type WorkspaceInput = {
  readonly template_id: string;
  readonly name?: string | undefined;
  readonly parameters?: Readonly<Record<string, string>> | undefined;
  readonly preset_id?: string | undefined;
};

export interface ToolServices {
  /** Whether the owner may use the chat's workspace now: sharing ends, people are suspended. */
  mayUseWorkspace(): Promise<boolean>;
  /** What no result may show. */
  knownSecrets(): Promise<KnownSecrets>;
  /** Whether the owner may begin chats in the chat's organization now. */
  mayBeginChats(): Promise<boolean>;
  /** `page` from 1 on. */
  listTemplates(query: string, page: number): Promise<ToolResult>;
  readTemplate(id: string): Promise<ToolResult>;
  /** Makes a workspace and binds the chat to it; one that it has already is answered as it is. Waits until it can be worked in. */
  createWorkspace(input: WorkspaceInput, signal: AbortSignal): Promise<ToolResult>;
  startWorkspace(parameters: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ToolResult>;
  /** Starts the chat's workspace for a call when it is stopped, as its template and its owner allow; waits until it can be worked in. */
  wakeWorkspace(signal: AbortSignal): Promise<void>;
  stopWorkspace(signal: AbortSignal): Promise<ToolResult>;
  /** What brings an agent back that is not connected, in one sentence for the model. */
  wayBack(): Promise<string>;
  /** Keeps these bytes as a file of the chat and answers its id: the same for the same call. */
  keepFile(file: KeptFile): Promise<string>;
  /** The same for bytes of any kind that people may upload; 400 for others. */
  attachFile(
    name: string,
    bytes: Uint8Array,
    number?: number,
  ): Promise<{ readonly file_id: string; readonly media_type: string }>;
}

/** `number` counts the files of one call from 0, which is the default. */
export type KeptFile = {
  readonly name: string;
  readonly media_type: string;
  readonly bytes: Uint8Array;
  readonly number?: number;
};

/** Of whom, where and for which call. */
export type ServicesOf = {
  readonly chat_id: string;
  readonly owner_id: string;
  readonly organization_id: string;
  readonly workspace_id: string | null;
  /** As in `ToolContext`. */
  readonly run_id: string;
};
