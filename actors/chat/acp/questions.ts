// What a coding agent asks during its turn: each request is a question of its own in the chat, whatever the agent names it, and is answered
// once. An approval counts for what the question showed and for nothing else. Pure but for its own memory.
import { type ChatTool, isDescribed, updatedCall } from "#src/acp/calls.ts";
import type { ToolCallUpdate } from "#src/acp/connection.ts";
import type { Asked } from "./events.ts";

/** One allowed change of a file. `content` is undefined where the question did not show it. */
type Grant = { readonly path: string; readonly content: string | undefined };

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

  /** Answers the question and notes what an approval allows the agent to write. False when the question has no call of this ID. */
  answer(id: string, isGranted: boolean): boolean {
    const question = this.#open.get(id);
    if (!question) return false;
    const { asked, shown } = question;
    this.#open.delete(id);
    if (isGranted && shown && !asked.isWrite) this.#grants.push(...grantsOf(shown));
    asked.answer(isGranted);
    return true;
  }

  /** True once for each change that was allowed: the file, with the content that the question showed. */
  useGrant(path: string, content: string): boolean {
    const at = this.#grants.findIndex(
      (one) => one.path === path && (one.content === undefined || one.content === content),
    );
    if (at < 0) return false;
    this.#grants.splice(at, 1);
    return true;
  }

  /** Forgets approvals: the agent's next turn has its own. */
  beginTurn(): void {
    this.cancel();
    this.#requests.clear();
    this.#grants = [];
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

/** What the call changes, as its question showed it: passages count for no other content of the file. */
const grantsOf = ({ tool_name, args }: ChatTool): Grant[] => {
  if (tool_name === "write_file") return [{ path: String(args.path), content: String(args.content) }];
  if (tool_name !== "edit_files" || !Array.isArray(args.files)) return [];
  return args.files.flatMap(({ path, edits }: { path: string; edits: { new_text: string }[] }) =>
    edits.length > 1 ? [] : [{ path, content: edits[0]?.new_text }],
  );
};
