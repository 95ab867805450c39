// Sorts a scripted model's calls by purpose, because side calls arrive in any order relative to the turn.
import type { ScriptedCall, ScriptedModels } from "./scripted-models.ts";

const KINDS = {
  title: "Give this conversation a title",
  label: "two to five words",
  summary: "Sum up this conversation",
};
export type CallKind = keyof typeof KINDS | "turn";

const classifyCall = ({ request }: ScriptedCall): CallKind => {
  const instruction = request.messages[0]?.content[0]?.text ?? "";
  const kinds = Object.entries(KINDS) as [keyof typeof KINDS, string][];
  return kinds.find(([, phrase]) => instruction.includes(phrase))?.[0] ?? "turn";
};

/** Returns a function that waits for the next call of a kind; other calls stay queued. */
export const createCallWaiter = (models: Pick<ScriptedModels, "next">) => {
  const queued: ScriptedCall[] = [];
  return async (kind: CallKind): Promise<ScriptedCall> => {
    for (;;) {
      const index = queued.findIndex((call) => classifyCall(call) === kind);
      const [found] = index < 0 ? [] : queued.splice(index, 1);
      if (found) return found;
      queued.push(await models.next());
    }
  };
};
