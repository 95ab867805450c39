// What a model turns out not to take: an effort, pictures, documents, thoughts. Servers of open models differ, and say so only when they
// refuse a request; it is sent again without, and what a model lacks for good is not tried again (rules EF-3, MO-41, MO-42). Pure.
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import type { PromptForm } from "./prompt.ts";

/** How a model is asked. */
export type Manner = Pick<PromptForm, "pictures" | "documents" | "thoughts"> & { readonly effort: boolean };

/** At first, by what the API is known to take. */
export const mannerFor = (kind: ProviderKind, useResponses: boolean): Manner => {
  const isChatApi = kind === "openai-compat" || (kind === "openai" && !useResponses);
  const thoughts = kind === "openai-compat" ? "tools" : isChatApi ? "none" : "signed";
  return { effort: true, documents: true, pictures: isChatApi ? "behind" : "inside", thoughts };
};

type Refusal = {
  readonly status: number | undefined;
  readonly words: string;
  readonly prompt: LanguageModelV4Prompt;
  readonly hadEffort: boolean;
};
/** `isForGood`: the model will not take it next time either. */
export type Concession = { readonly change: Partial<Manner>; readonly isForGood: boolean };

const REFUSALS: ReadonlySet<number | undefined> = new Set([400, 404, 415, 422, 500, 501]);
const LACKS =
  /not support|unsupported|no support|multi-?modal|text[- ]only|unknown (variant|part|type)|expected .{0,3}text|mmproj|not (accept|allow)|invalid (content|part|type|value)/i;

/** How to ask again after this refusal; undefined when it was about something else. */
export const concessionFor = (
  manner: Manner,
  { status, words, prompt, hadEffort }: Refusal,
): Concession | undefined => {
  if (!REFUSALS.has(status)) return undefined;
  if (/reasoning_content/i.test(words) && manner.thoughts !== "signed") {
    const isOwed = /missing|must be|passed back|required/i.test(words);
    const thoughts = isOwed ? "all_tools" : "none";
    if (manner.thoughts !== thoughts) return { change: { thoughts }, isForGood: true };
  }
  const types = mediaTypes(prompt);
  const isForGood = LACKS.test(words);
  if (types.some(isDocument) && /\bfile\b|file_data|pdf|document/i.test(words) && !/image/i.test(words)) {
    return { change: { documents: false }, isForGood };
  }
  if (types.length > 0 && /image|picture|vision|multi-?modal|mmproj|media|content (part|type)/i.test(words)) {
    return { change: { pictures: "none", documents: false }, isForGood };
  }
  if (hadEffort && status === 400 && /reasoning|thinking|effort/i.test(words)) {
    return { change: { effort: false }, isForGood: true };
  }
  return undefined;
};

const isDocument = (media_type: string): boolean => !media_type.startsWith("image/");

const mediaTypes = (prompt: LanguageModelV4Prompt): string[] =>
  prompt.flatMap(({ role, content }) =>
    role === "user" || role === "tool"
      ? content.flatMap((part) => {
          if (part.type === "file") return [part.mediaType];
          if (part.type !== "tool-result" || part.output.type !== "content") return [];
          return part.output.value.flatMap((one) => (one.type === "file" ? [one.mediaType] : []));
        })
      : [],
  );
