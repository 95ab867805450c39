// What a coding agent asks during its turn: each request is a question of its own in the chat, whatever the agent names it, and is answered
// once. An approval counts for what the question showed and for nothing else. Pure but for its own memory.
import { type ChatTool, isDescribed, updatedCall } from "#src/acp/calls.ts";
import type { ToolCallUpdate } from "#src/acp/connection.ts";
import type { Asked } from "./events.ts";

type Edit = { readonly old_text: string; readonly new_text: string };

/** One allowed change of a file. `edits` is empty where the question did not show the change. */
type Grant = { readonly path: string } & ({ readonly content: string } | { readonly edits: readonly Edit[] });

export class Questions {
  /** Questions without an answer, by the IDs that their calls have in the chat. */
  readonly #open = new Map<string, { readonly asked: Asked; shown?: ChatTool }>();
  /** The ID in the chat of the call that the agent means by its own ID. */
  readonly #names = new Map<string, string>();
  readonly #taken = new Set<string>();
  /** The agent's IDs of calls that it has asked about, and its last request for each in this turn. */
  readonly #asked = new Set<string>();
  readonly #requests = new Map<string, ToolCallUpdate>();
  #grants: Grant[] = [];
  /** Calls that a person has allowed and the agent has not made through Slipway yet. */
  #calls: ChatTool[] = [];
  readonly #folder: string;

  /** `folder`: the session's, which a command without one means. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Keeps IDs from being used again: those of calls that the chat had before this session. */
  reserve(ids: Iterable<string>): void {
    for (const id of ids) this.#taken.add(id);
  }

  /** Returns the ID in the chat of the agent's call. */
  nameOf(agent_id: string): string {
    return this.#names.get(agent_id) ?? this.#claim(agent_id);
  }

  /**
   * Takes a request in. One for a call that was asked about before, or is over by `isOver`, is another call: the agent may have put other
   * contents under the same ID. `former` is the call that it replaces.
   */
  take(asked: Asked, isOver: (id: string) => boolean): { readonly asked: Asked; readonly former: string | undefined } {
    const { toolCallId } = asked.call;
    const before = this.nameOf(toolCallId);
    const last = this.#requests.get(toolCallId);
    const isRepeated = this.#asked.has(toolCallId) || isOver(before);
    const id = isRepeated ? this.#claim(toolCallId) : before;
    // A request that describes nothing repeats the one before.
    const described = last && !isDescribed(updatedCall(undefined, asked.call)) ? last : asked.call;
    this.#asked.add(toolCallId);
    this.#requests.set(toolCallId, described);
    const named: Asked = Object.assign({}, asked, { call: Object.assign({}, described, { toolCallId: id }) });
    this.#open.set(id, { asked: named });
    return { asked: named, former: isRepeated ? before : undefined };
  }

  /** Notes what the question shows: an approval counts for that. */
  show(id: string, tool: ChatTool): void {
    const question = this.#open.get(id);
    if (question) question.shown = tool;
  }

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** The IDs of the calls that wait for an answer. */
  get open(): readonly string[] {
    return [...this.#open.keys()];
  }

  /**
   * Answers the question and notes what an approval allows the agent to write, or to have run. False when the question has no call of this ID.
   * `isByPerson`: a person has seen it; what a rule allows under the agent's name for a tool says nothing of ours.
   */
  answer(id: string, isGranted: boolean, isByPerson = false): boolean {
    const question = this.#open.get(id);
    if (!question) return false;
    const { asked, shown } = question;
    this.#open.delete(id);
    if (isGranted && shown && !asked.isWrite && !asked.own) {
      this.#grants.push(...grantsOf(shown));
      if (isByPerson) this.#calls.push(shown);
    }
    asked.answer(isGranted);
    return true;
  }

  /** True where a change of this file was allowed and not made yet. */
  hasGrant(path: string): boolean {
    return this.#grants.some((one) => one.path === path);
  }

  /** True once for each change that was allowed: this content is what the question showed. `now`: the file as it is. */
  useGrant(path: string, content: string, now: string | undefined): boolean {
    const at = this.#grants.findIndex((one) => one.path === path && isWhatWasShown(one, content, now));
    if (at >= 0) this.#grants.splice(at, 1);
    return at >= 0;
  }

  /** True once for each call that a person has allowed when the agent asked: this is what the question showed. */
  useCallGrant(tool: ChatTool): boolean {
    const at = this.#calls.findIndex((one) => isSameCall(one, tool, this.#folder));
    if (at >= 0) this.#calls.splice(at, 1);
    return at >= 0;
  }

  /** Forgets approvals: the agent's next turn has its own. */
  beginTurn(): void {
    this.cancel();
    this.#requests.clear();
    this.#grants = [];
    this.#calls = [];
  }

  /** Tells the agent that its questions will not be answered. */
  cancel(): void {
    for (const { asked } of this.#open.values()) asked.answer(undefined);
    this.#open.clear();
  }

  #claim(agent_id: string): string {
    let id = agent_id;
    for (let count = 2; this.#taken.has(id); count += 1) id = `${agent_id}~${count}`;
    this.#taken.add(id);
    this.#names.set(agent_id, id);
    return id;
  }
}

const grantsOf = ({ tool_name, args }: ChatTool): Grant[] => {
  if (tool_name === "write_file") return [{ path: String(args.path), content: String(args.content) }];
  return tool_name === "edit_files" && Array.isArray(args.files) ? args.files : [];
};

const isWhatWasShown = (grant: Grant, content: string, now: string | undefined): boolean => {
  if ("content" in grant) return grant.content === content;
  return grant.edits.length === 0 || edited(now, grant.edits) === content;
};

/** Agents name a tool of ours in the title, and show its arguments as they are or as a member. A command is the same in the same words. */
const isSameCall = (shown: ChatTool, { tool_name, args }: ChatTool, folder: string): boolean => {
  if (tool_name === "execute") return shown.tool_name === tool_name && isSameCommand(shown.args, args, folder);
  if (!shown.tool_name.startsWith("agent_")) return false;
  const { title, ...rest } = shown.args;
  const words = String(title).split(/[^A-Za-z0-9_-]+/);
  const isNamed = words.some((word) => word === tool_name || word.endsWith(`__${tool_name}`));
  return isNamed && (Bun.deepEquals(rest, args) || Bun.deepEquals(rest.arguments, args));
};

/** The question shows the session's folder where the agent named none. */
const isSameCommand = (shown: ChatTool["args"], run: ChatTool["args"], folder: string): boolean =>
  shown.command === run.command && (shown.workdir ?? folder) === (run.workdir ?? folder);

/** The text after the edits; undefined where a passage is not in it exactly once. */
const edited = (text: string | undefined, edits: readonly Edit[]): string | undefined =>
  edits.reduce<string | undefined>((now, { old_text, new_text }) => {
    const [before = "", after, ...others] = now?.split(old_text) ?? [];
    return after === undefined || others.length > 0 ? undefined : before + new_text + after;
  }, text);
