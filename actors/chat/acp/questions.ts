// Tracks a coding agent's requests for permission during its turn. Each request becomes a separate question in the chat, even if the agent
// reuses a call's ID. An approval covers exactly the call that the question showed. If the question named a file without showing the
// change, the approval covers one change of that file.
import { applyUpdate, type ChatTool, isDescribed } from "#src/acp/calls.ts";
import type { ToolCallUpdate } from "#src/acp/connection.ts";
import type { AgentQuestion } from "./events.ts";
import { ShellFolders } from "./shell-folders.ts";

type Edit = { readonly old_text: string; readonly new_text: string };

/** One approved change of a file. `edits` is empty if the question did not show the change. */
type EditGrant = { readonly path: string } & ({ readonly content: string } | { readonly edits: readonly Edit[] });

export class Questions {
  /** Unanswered questions, by the chat's ID of their call. */
  readonly #open = new Map<string, { readonly question: AgentQuestion; shown?: ChatTool }>();
  /** The chat's ID of each call, by the agent's ID. */
  readonly #callIds = new Map<string, string>();
  readonly #usedIds = new Set<string>();
  /** Calls that the agent has asked about in this session, by the agent's ID. */
  readonly #askedCalls = new Set<string>();
  /** The last request for each call in this turn, by the agent's ID. */
  readonly #lastRequests = new Map<string, ToolCallUpdate>();
  #editGrants: EditGrant[] = [];
  /** Calls that a person has approved and the agent has not yet made through Slipway. */
  #callGrants: ChatTool[] = [];
  readonly shell: ShellFolders;

  /** `folder`: the session's folder, the default working directory of commands. */
  constructor(folder: string) {
    this.shell = new ShellFolders(folder);
  }

  /** Marks the IDs of the chat's earlier calls as used. */
  reserve(ids: Iterable<string>): void {
    for (const id of ids) this.#usedIds.add(id);
  }

  /** Returns the chat's ID for the agent's call. */
  toChatCallId(agent_id: string): string {
    return this.#callIds.get(agent_id) ?? this.#claim(agent_id);
  }

  /**
   * Registers a request and returns it with the chat's ID of its call. If the agent has already asked about the call, or the call has
   * ended, the agent may have reused the ID for another call. The request then gets a new ID, and `replaced_id` is the previous one.
   */
  register(
    request: AgentQuestion,
    hasEnded: (call_id: string) => boolean,
  ): { readonly question: AgentQuestion; readonly replaced_id: string | undefined } {
    const { toolCallId } = request.call;
    const previousId = this.toChatCallId(toolCallId);
    const last = this.#lastRequests.get(toolCallId);
    const isRepeated = this.#askedCalls.has(toolCallId) || hasEnded(previousId);
    const id = isRepeated ? this.#claim(toolCallId) : previousId;
    // A request without a description repeats the last one.
    const described = last && !isDescribed(applyUpdate(undefined, request.call)) ? last : request.call;
    this.#askedCalls.add(toolCallId);
    this.#lastRequests.set(toolCallId, described);
    const call = Object.assign({}, described, { toolCallId: id });
    const question: AgentQuestion = Object.assign({}, request, { call });
    this.#open.set(id, { question });
    return { question, replaced_id: isRepeated ? previousId : undefined };
  }

  /** Records the call that people see in the question, because an approval covers only this call. */
  show(id: string, tool: ChatTool): void {
    const open = this.#open.get(id);
    if (open) open.shown = tool;
  }

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** The IDs of calls that wait for an answer. */
  get openIds(): readonly string[] {
    return [...this.#open.keys()];
  }

  /**
   * Answers the question and remembers an approval for later requests. Returns false when no question has this call ID. A rule cannot
   * approve a later call of Slipway's tools, because it has matched the agent's name for the tool, not the tool's real name.
   */
  answer(id: string, isGranted: boolean, isByPerson = false): boolean {
    const open = this.#open.get(id);
    if (!open) return false;
    const { question, shown } = open;
    this.#open.delete(id);
    if (!isGranted) this.shell.refuse(id);
    if (isGranted && shown && !question.isWrite && !question.serverCall) {
      this.#editGrants.push(...toEditGrants(shown));
      if (isByPerson) this.#callGrants.push(shown);
    }
    question.answer(isGranted);
    return true;
  }

  /** Returns whether the agent may still make an approved change of this file. */
  hasEditGrant(path: string): boolean {
    return this.#editGrants.some((grant) => grant.path === path);
  }

  /**
   * Uses up an approval for this change of a file, if there is one: its question showed exactly this content, or no content. `current` is
   * the file's content before the change.
   */
  useEditGrant(path: string, content: string, current: string | undefined): boolean {
    return takeFirst(this.#editGrants, (grant) => grant.path === path && coversContent(grant, content, current));
  }

  /** Uses up a person's approval for this call, if there is one: its question showed exactly this call. */
  useCallGrant(tool: ChatTool): boolean {
    return takeFirst(this.#callGrants, (shown) => isSameCall(shown, tool, this.shell.folder));
  }

  /** Clears all approvals, because they are valid for one turn of the agent. */
  beginTurn(): void {
    this.cancel();
    this.#lastRequests.clear();
    this.#editGrants = [];
    this.#callGrants = [];
  }

  /** Tells the agent that its questions will not be answered. */
  cancel(): void {
    for (const [id, { question }] of this.#open) {
      this.shell.refuse(id);
      question.answer(undefined);
    }
    this.#open.clear();
  }

  #claim(agent_id: string): string {
    let id = agent_id;
    for (let count = 2; this.#usedIds.has(id); count += 1) id = `${agent_id}~${count}`;
    this.#usedIds.add(id);
    this.#callIds.set(agent_id, id);
    return id;
  }
}

/** Removes the first matching item. Returns whether there was one. */
const takeFirst = <T>(items: T[], matches: (item: T) => boolean): boolean => {
  const index = items.findIndex(matches);
  if (index >= 0) items.splice(index, 1);
  return index >= 0;
};

const toEditGrants = ({ tool_name, args }: ChatTool): EditGrant[] => {
  if (tool_name === "write_file") return [{ path: String(args.path), content: String(args.content) }];
  return tool_name === "edit_files" && Array.isArray(args.files) ? args.files : [];
};

const coversContent = (grant: EditGrant, content: string, current: string | undefined): boolean => {
  if ("content" in grant) return grant.content === content;
  return grant.edits.length === 0 || applyEdits(current, grant.edits) === content;
};

/**
 * Returns whether a call of Slipway's tools is the one that the question showed. Agents show the tool's name in the title, and its
 * arguments either directly or in the field `arguments`.
 */
const isSameCall = (shown: ChatTool, { tool_name, args }: ChatTool, folder: string): boolean => {
  if (tool_name === "execute") return shown.tool_name === tool_name && isSameCommand(shown.args, args, folder);
  if (!shown.tool_name.startsWith("agent_")) return false;
  const { title, ...shownArgs } = shown.args;
  const words = String(title).split(/[^A-Za-z0-9_-]+/);
  const hasName = words.some((word) => word === tool_name || word.endsWith(`__${tool_name}`));
  return hasName && (Bun.deepEquals(shownArgs, args) || Bun.deepEquals(shownArgs.arguments, args));
};

/** The commands must be equal, and run in the same folder. */
const isSameCommand = (shown: ChatTool["args"], run: ChatTool["args"], folder: string): boolean =>
  shown.command === run.command && (shown.workdir ?? folder) === (run.workdir ?? folder);

/** Applies the edits to the text. Returns undefined when a passage does not occur exactly once. */
const applyEdits = (text: string | undefined, edits: readonly Edit[]): string | undefined =>
  edits.reduce<string | undefined>((current, { old_text, new_text }) => {
    const [before = "", after, ...others] = current?.split(old_text) ?? [];
    return after === undefined || others.length > 0 ? undefined : before + new_text + after;
  }, text);
