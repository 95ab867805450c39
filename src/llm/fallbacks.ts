// Decides what a request to a model omits because its server refuses it. Servers differ and report this only by refusing: the request is
// retried without the refused part, and permanent limitations are stored (rules EF-3, MO-41, MO-42, MO-61). Pure.
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { ModelFeature } from "#schema/chats/model-feature.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import type { PromptForm } from "./prompt.ts";

/** The form of a request to a model. */
export type RequestForm = Pick<PromptForm, "pictures" | "documents" | "thoughts" | "signatures"> & {
  readonly unsupported: ReadonlySet<ModelFeature>;
};

type ModelCapabilities = { readonly useResponses: boolean; readonly unsupported: readonly ModelFeature[] };

/** Returns the first form of a request, from the features that the API accepts and the model is known not to support. */
export const toInitialForm = (kind: ProviderKind, { useResponses, unsupported }: ModelCapabilities): RequestForm => {
  const isChatApi = kind === "openai-compat" || (kind === "openai" && !useResponses);
  const thoughts = kind === "openai-compat" ? "tools" : isChatApi ? "none" : "signed";
  const unsupportedFeatures = new Set(unsupported);
  return {
    pictures: unsupportedFeatures.has("images") ? "none" : isChatApi ? "behind" : "inside",
    documents: !unsupportedFeatures.has("documents") && !unsupportedFeatures.has("images"),
    thoughts,
    signatures: true,
    unsupported: unsupportedFeatures,
  };
};

/** The refused request. */
export type Refusal = {
  readonly status: number | undefined;
  readonly words: string;
  readonly prompt: LanguageModelV4Prompt;
  /** The optional features that the request contained. */
  readonly sent: ReadonlySet<ModelFeature>;
};
/** `isPermanent`: the model will never accept it. `feature`: the limitation that is stored in the model's settings. */
export type Fallback = {
  readonly change: Partial<RequestForm>;
  readonly isPermanent: boolean;
  readonly feature?: ModelFeature;
};

const REFUSAL_STATUSES: ReadonlySet<number | undefined> = new Set([400, 404, 405, 413, 415, 422, 500, 501]);
const LACKS_SUPPORT =
  /not support|unsupported|no support|multi-?modal|text[- ]only|unknown (variant|part|type)|expected .{0,3}text|mmproj|not (accept|allow)|invalid (content|part|type|value)/i;

/** Phrases with which servers reject a feature. */
const FEATURE_PATTERNS: readonly (readonly [ModelFeature, RegExp])[] = [
  ["stream_options", /stream_options|include_usage/i],
  ["tool_streaming", /eager_input_streaming|fine-grained-tool-streaming/i],
  ["parallel_tool_calls", /parallel[_ -]?tool/i],
  [
    "tools",
    /not support.{0,24}\b(tool|function)|\b(tool|function)[a-z_ -]{0,24}(is|are)? ?not (be )?(supported|enabled|available|allowed)|support tool use|--enable-auto-tool-choice|tools? param requires|\btools\b.{0,40}(extra|unknown|unexpected|not permitted)|(extra|unknown|unexpected|not permitted).{0,40}\btools\b/i,
  ],
  [
    "system_role",
    /(system|developer) (role|message|instruction|prompt)s?.{0,40}not (be )?(supported|allowed|enabled)|role.{0,40}\bsystem\b.{0,40}(not|unsupported|invalid)|not support.{0,20}\bsystem\b/i,
  ],
  ["reasoning_effort", /reasoning|thinking|effort/i],
  [
    "max_output_tokens",
    /max_(completion_|output_)?tokens.{0,80}(not support|unsupported|too large|not permitted|unknown|must be|at most)|unsupported.{0,40}max_(completion_|output_)?tokens/i,
  ],
  ["temperature", /temperature/i],
  ["top_p", /top_?p\b/i],
  ["top_k", /top_?k\b/i],
  ["presence_penalty", /presence_?penalty/i],
  ["frequency_penalty", /frequency_?penalty/i],
  ["long_tool_call_ids", /tool.?call.?ids?\b.{0,120}(length of 9|a-z, A-Z, 0-9)/i],
  ["user_after_tool", /unexpected role .?user.? after role .?tool/i],
];

/** Returns how to retry after this rejection; undefined if it was about something else. */
export const findFallback = (form: RequestForm, refusal: Refusal): Fallback | undefined => {
  const { status, words, sent } = refusal;
  if (!REFUSAL_STATUSES.has(status)) return undefined;
  const fallback = findReasoningFallback(form, refusal) ?? findFileFallback(form, refusal);
  if (fallback) return fallback;
  // The history contains incomplete thinking blocks. This request omits thinking; the next may use it again.
  if (sent.has("reasoning_effort") && /thinking.{0,20}block|expected .?thinking/i.test(words)) {
    return { change: { unsupported: new Set([...form.unsupported, "reasoning_effort"]) }, isPermanent: false };
  }
  const found = FEATURE_PATTERNS.find(([feature, pattern]) => sent.has(feature) && pattern.test(words));
  return found && dropFeature(form, found[0]);
};

const dropFeature = (form: RequestForm, feature: ModelFeature, change: Partial<RequestForm> = {}): Fallback => ({
  change: { ...change, unsupported: new Set([...form.unsupported, feature]) },
  isPermanent: true,
  feature,
});

/** Handles thinking blocks that the server requires unchanged or not at all, and blocks signed by another model. */
const findReasoningFallback = (form: RequestForm, { status, words }: Refusal): Fallback | undefined => {
  if (/reasoning_content/i.test(words) && form.thoughts !== "signed") {
    const isRefused = /unsupported|not (support|permitted|allowed)|unknown|unexpected/i.test(words);
    const isRequired = !isRefused && /missing|must be|passed back|required/i.test(words);
    const thoughts = isRequired ? "all_tools" : "none";
    if (form.thoughts !== thoughts) return { change: { thoughts }, isPermanent: true };
  }
  const isSignedByOtherModel =
    status === 400 && /signature|encrypted[_ ]content|redacted_thinking|thinking.{0,20}block/i.test(words);
  return isSignedByOtherModel && form.signatures ? { change: { signatures: false }, isPermanent: false } : undefined;
};

const findFileFallback = (form: RequestForm, { words, prompt }: Refusal): Fallback | undefined => {
  const types = listMediaTypes(prompt);
  const isPermanent = LACKS_SUPPORT.test(words);
  if (types.some(isDocument) && /\bfile\b|file_data|pdf|document/i.test(words) && !/image/i.test(words)) {
    const change = { documents: false };
    return isPermanent ? dropFeature(form, "documents", change) : { change, isPermanent };
  }
  if (types.length > 0 && /image|picture|vision|multi-?modal|mmproj|media|content (part|type)/i.test(words)) {
    const change = { pictures: "none", documents: false } as const;
    return isPermanent ? dropFeature(form, "images", change) : { change, isPermanent };
  }
  return undefined;
};

const isDocument = (media_type: string): boolean => !media_type.startsWith("image/");

const listMediaTypes = (prompt: LanguageModelV4Prompt): string[] =>
  prompt.flatMap(({ role, content }) =>
    role === "user" || role === "tool"
      ? content.flatMap((part) => {
          if (part.type === "file") return [part.mediaType];
          if (part.type !== "tool-result" || part.output.type !== "content") return [];
          return part.output.value.flatMap((one) => (one.type === "file" ? [one.mediaType] : []));
        })
      : [],
  );
