// Tracks the questions of a coding agent during its turn. Each request becomes a separate question in the chat, whatever ID the agent uses,
// and is answered once. An approval covers what the question showed; if it showed a file without its change, any one change of that file.
import { applyUpdate, type ChatTool, isDescribed } from "#src/acp/calls.ts";
import type { ToolCallUpdate } from "#src/acp/connection.ts";
import type { AgentQuestion } from "./events.ts";
import { ShellFolders } from "./shell-folders.ts";

type Edit = { readonly old_text: string; readonly new_text: string };

/** One approved change of a file. `edits` is empty when the question did not show the change. */
type Grant = { readonly path: string } & ({ readonly content: string } | { readonly edits: readonly Edit[] });

export class Questions {
  /** Unanswered questions, keyed by the chat's call ID. */
  readonly #open = new Map<string, { readonly asked: AgentQuestion; shown?: ChatTool }>();
  /** Maps the agent's ID of a call to the chat's ID. */
  readonly #callIds = new Map<string, string>();
  readonly #usedIds = new Set<string>();
  /** The agent's IDs of calls it has asked about in this session. */
  readonly #asked = new Set<string>();
  /** The last request for each call in this turn, by the agent's ID. */
  readonly #requests = new Map<string, ToolCallUpdate>();
  #grants: Grant[] = [];
  /** Calls that a person has approved and the agent has not yet made through Slipway. */
  #calls: ChatTool[] = [];
  readonly shell: ShellFolders;

  /** `folder`: the session's folder, the default working directory of commands. */
  constructor(folder: string) {
    this.shell = new ShellFolders(folder);
  }

  /** Reserves the IDs of calls that the chat had before this session. */
  reserve(ids: Iterable<string>): void {
    for (const id of ids) this.#usedIds.add(id);
  }

  /** Returns the chat's ID for the agent's call. */
  toChatCallId(agent_id: string): string {
    return this.#callIds.get(agent_id) ?? this.#claim(agent_id);
  }

  /**
   * Registers a request. A request becomes a new call if the agent already asked about the call, or if the call is over according to
   * `isOver`: the agent may have used the same ID for other content. `former` is the ID of the call that it replaces.
   */
  register(
    requested: AgentQuestion,
    isOver: (id: string) => boolean,
  ): { readonly asked: AgentQuestion; readonly former: string | undefined } {
    const { toolCallId } = requested.call;
    const before = this.toChatCallId(toolCallId);
    const last = this.#requests.get(toolCallId);
    const isRepeated = this.#asked.has(toolCallId) || isOver(before);
    const id = isRepeated ? this.#claim(toolCallId) : before;
    // A request without a description repeats the previous one.
    const described = last && !isDescribed(applyUpdate(undefined, requested.call)) ? last : requested.call;
    this.#asked.add(toolCallId);
    this.#requests.set(toolCallId, described);
    const question: AgentQuestion = Object.assign({}, requested, {
      call: Object.assign({}, described, { toolCallId: id }),
    });
    this.#open.set(id, { asked: question });
    return { asked: question, former: isRepeated ? before : undefined };
  }

  /** Records what the question shows; an approval covers only that. */
  show(id: string, tool: ChatTool): void {
    const question = this.#open.get(id);
    if (question) question.shown = tool;
  }

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** The IDs of calls that wait for an answer. */
  get open(): readonly string[] {
    return [...this.#open.keys()];
  }

  /**
   * Answers the question and records the file changes and calls that the approval covers. Returns false when no question has this call ID.
   * `isByPerson`: a person saw the question. Approval by a rule does not cover calls of Slipway's tools, because it matched the agent's
   * name for the tool.
   */
  answer(id: string, isGranted: boolean, isByPerson = false): boolean {
    const question = this.#open.get(id);
    if (!question) return false;
    const { asked, shown } = question;
    this.#open.delete(id);
    if (!isGranted) this.shell.refuse(id);
    if (isGranted && shown && !asked.isWrite && !asked.own) {
      this.#grants.push(...toGrants(shown));
      if (isByPerson) this.#calls.push(shown);
    }
    asked.answer(isGranted);
    return true;
  }

  /** Returns whether an approved change of this file is still outstanding. */
  hasGrant(path: string): boolean {
    return this.#grants.some((one) => one.path === path);
  }

  /**
   * Returns true once for each approved change, if the question showed exactly this content or did not show any. `current`: the file's
   * content before the change.
   */
  useGrant(path: string, content: string, current: string | undefined): boolean {
    const index = this.#grants.findIndex((one) => one.path === path && matchesShown(one, content, current));
    if (index >= 0) this.#grants.splice(index, 1);
    return index >= 0;
  }

  /** Returns true once for each call that a person approved, if the question showed exactly this call. */
  useCallGrant(tool: ChatTool): boolean {
    const index = this.#calls.findIndex((one) => isSameCall(one, tool, this.shell.folder));
    if (index >= 0) this.#calls.splice(index, 1);
    return index >= 0;
  }

  /** Clears all approvals: they are valid for one turn of the agent. */
  beginTurn(): void {
    this.cancel();
    this.#requests.clear();
    this.#grants = [];
    this.#calls = [];
  }

  /** Tells the agent that its questions will not be answered. */
  cancel(): void {
    for (const [id, { asked }] of this.#open) {
      this.shell.refuse(id);
      asked.answer(undefined);
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

const toGrants = ({ tool_name, args }: ChatTool): Grant[] => {
  if (tool_name === "write_file") return [{ path: String(args.path), content: String(args.content) }];
  return tool_name === "edit_files" && Array.isArray(args.files) ? args.files : [];
};

const matchesShown = (grant: Grant, content: string, current: string | undefined): boolean => {
  if ("content" in grant) return grant.content === content;
  return grant.edits.length === 0 || applyEdits(current, grant.edits) === content;
};

/**
 * Compares a call with the one shown. Agents put our tool's name in the title and its arguments at the top level or in a member. Commands
 * must match word for word.
 */
const isSameCall = (shown: ChatTool, { tool_name, args }: ChatTool, folder: string): boolean => {
  if (tool_name === "execute") return shown.tool_name === tool_name && isSameCommand(shown.args, args, folder);
  if (!shown.tool_name.startsWith("agent_")) return false;
  const { title, ...rest } = shown.args;
  const words = String(title).split(/[^A-Za-z0-9_-]+/);
  const isNamed = words.some((word) => word === tool_name || word.endsWith(`__${tool_name}`));
  return isNamed && (Bun.deepEquals(rest, args) || Bun.deepEquals(rest.arguments, args));
};

/** The question shows the session's folder if the agent named none. */
const isSameCommand = (shown: ChatTool["args"], run: ChatTool["args"], folder: string): boolean =>
  shown.command === run.command && (shown.workdir ?? folder) === (run.workdir ?? folder);

/** Applies the edits to the text. Returns undefined when a passage does not occur exactly once. */
const applyEdits = (text: string | undefined, edits: readonly Edit[]): string | undefined =>
  edits.reduce<string | undefined>((current, { old_text, new_text }) => {
    const [before = "", after, ...others] = current?.split(old_text) ?? [];
    return after === undefined || others.length > 0 ? undefined : before + new_text + after;
  }, text);
