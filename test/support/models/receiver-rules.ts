// The requests that model servers reject. Each rule names its source: the provider's documentation, the file with the provider's checks
// or, if neither exists, a public thread that quotes the server's error. The model server rejects requests by these rules, and a property
// test checks random histories against them. Pure.
import {
  arraysHaveItems,
  type Check,
  findFirstProblem,
  isDraft2020,
  isObject,
  type Json,
  keysMatch,
  limitTools,
  list,
  namesAreUnique,
  namesMatch,
  objectsHaveProperties,
  patternsAreAnchored,
  refsResolve,
  requiredIsKnown,
  rootHasNoCombinators,
  rootIsObject,
  typeIsInBranches,
} from "./tool-rules.ts";

export type Refusal = { readonly status: number; readonly body: unknown };

/** Marks rules that no documentation or source of the provider states. */
const THREAD = "only in an error message that a thread quotes: ";

type Rule = { readonly source: string; readonly status?: number; readonly check: Check };

type Message = {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
  readonly tool_call_id?: string;
  readonly [name: string]: unknown;
};
type Block = { readonly type: string; readonly [name: string]: unknown };

const listMessages = (body: Json): readonly Message[] => list<Message>(body.messages);

// Chat completions.

const callsAreAnswered: Check = (body) => {
  const messages = listMessages(body);
  return findFirstProblem(messages, (message, index) => {
    const calls = list<{ id: string }>(message.tool_calls).map(({ id }) => id);
    if (message.role === "tool") {
      let callIndex = index - 1;
      while (messages[callIndex]?.role === "tool") callIndex -= 1;
      const ids = list<{ id: string }>(messages[callIndex]?.tool_calls).map(({ id }) => id);
      return ids.includes(message.tool_call_id ?? "")
        ? undefined
        : "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
    }
    const answered: unknown[] = [];
    for (let answerIndex = index + 1; messages[answerIndex]?.role === "tool"; answerIndex += 1)
      answered.push(messages[answerIndex]?.tool_call_id);
    return calls.every((id) => answered.includes(id)) && answered.length === calls.length
      ? undefined
      : "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.";
  });
};

const chatIds =
  (pattern: RegExp, message: (id: string) => string): Check =>
  (body) =>
    findFirstProblem(listMessages(body), ({ tool_calls }) =>
      findFirstProblem(list<{ id: string }>(tool_calls), ({ id }) => (pattern.test(id) ? undefined : message(id))),
    );
const chatIdsAreUnique: Check = (body) => {
  const ids = listMessages(body).flatMap(({ tool_calls }) => list<{ id: string }>(tool_calls).map(({ id }) => id));
  return new Set(ids).size === ids.length ? undefined : "duplicate tool call id";
};
const argumentsAreObjects: Check = (body) =>
  findFirstProblem(listMessages(body), ({ tool_calls }) =>
    findFirstProblem(list<{ function: { arguments: string } }>(tool_calls), (call) =>
      isObject(JSON.parse(call.function.arguments)) ? undefined : "tool call arguments must be a JSON object",
    ),
  );
const rejectBlank =
  (message: (role: string, index: number) => string): Check =>
  (body) =>
    findFirstProblem(listMessages(body), ({ role, content, tool_calls }, index) => {
      const texts = Array.isArray(content)
        ? content.map(({ type, text }) => (type === "text" ? text : "x"))
        : [content];
      const isBlank = texts.length === 0 || texts.some((text) => typeof text !== "string" || text.trim() === "");
      const mayBeEmpty =
        role === "assistant" &&
        tool_calls !== undefined &&
        (content === null || content === undefined || content === "");
      return isBlank && !mayBeEmpty ? message(role, index) : undefined;
    });

/** As in chat templates of open models: one system message first, then user and model alternate. */
const rolesAlternate: Check = (body) => {
  const roles = listMessages(body)
    .map(({ role }) => role)
    .filter((role, index) => !(role === "system" && index === 0));
  if (roles.includes("system")) return "System message must be at the beginning.";
  const spoken = roles.filter((role) => role !== "tool");
  if (spoken[0] !== "user") return "Conversation roles must alternate user/assistant/user/assistant/...";
  return findFirstProblem(roles, (role, index) =>
    role === roles[index - 1] && role !== "tool"
      ? "After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results."
      : undefined,
  );
};
const rejectLastAssistant: Check = (body) =>
  listMessages(body).at(-1)?.role === "assistant"
    ? "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
    : undefined;
const rejectUserAfterTool: Check = (body) => {
  const roles = listMessages(body).map(({ role }) => role);
  return roles.some((role, index) => role === "user" && roles[index - 1] === "tool")
    ? "Unexpected role 'user' after role 'tool'"
    : undefined;
};
const textIsOneString: Check = (body) =>
  findFirstProblem(listMessages(body), ({ content }) =>
    Array.isArray(content) && content.every(({ type }) => type === "text")
      ? "Template error: content must be a string"
      : undefined,
  );

const OPENAI_CHAT = "platform.openai.com/docs/api-reference/chat/create";
const chat: readonly Rule[] = [
  { source: OPENAI_CHAT, check: callsAreAnswered },
  { source: `${OPENAI_CHAT}: tools, at most 128`, check: limitTools(128) },
  { source: `${OPENAI_CHAT}: function.name`, check: namesMatch(/^[a-zA-Z0-9_-]{1,64}$/) },
  {
    source: `${THREAD}github.com/microsoft/autogen/issues/6377`,
    check: chatIds(
      /^.{1,40}$/,
      () => "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40",
    ),
  },
  { source: "platform.openai.com/docs/guides/function-calling", check: rootIsObject },
  { source: "platform.openai.com/docs/guides/function-calling", check: rootHasNoCombinators },
  { source: "platform.openai.com/docs/guides/function-calling", check: arraysHaveItems },
  { source: "platform.openai.com/docs/guides/function-calling", check: objectsHaveProperties },
  { source: "json-schema.org/draft/2020-12", check: isDraft2020 },
  { source: "json-schema.org/draft/2020-12", check: refsResolve },
];

/** Servers of open models render messages with the model's template, and fail where the template does. */
const templated: readonly Rule[] = [
  {
    source: "huggingface.co/docs/transformers/chat_templating; templates of Mistral, Gemma, Devstral, Qwen",
    check: rolesAlternate,
  },
  { source: "templates of Hermes and Qwen: arguments are iterated as an object", check: argumentsAreObjects },
];

// Anthropic.

const toBlocks = (content: unknown): readonly Block[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : list<Block>(content);
const anthropicBlocks =
  (problem: (block: Block, path: string, role: string) => string | undefined): Check =>
  (body) =>
    findFirstProblem(listMessages(body), ({ role, content }, index) =>
      findFirstProblem(toBlocks(content), (block, blockIndex) =>
        problem(block, `messages.${index}.content.${blockIndex}`, role),
      ),
    );

const anthropic: readonly Rule[] = [
  {
    source: "platform.claude.com/docs/en/api/messages: tool_use.id",
    check: anthropicBlocks((block, path) => {
      const id = block.type === "tool_use" ? block.id : block.type === "tool_result" ? block.tool_use_id : "ok";
      return /^[a-zA-Z0-9_-]+$/.test(String(id))
        ? undefined
        : `${path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`;
    }),
  },
  {
    source: "platform.claude.com/docs/en/api/messages: tool_use.name",
    check: anthropicBlocks((block, path) =>
      block.type !== "tool_use" || /^[a-zA-Z0-9_-]{1,128}$/.test(String(block.name))
        ? undefined
        : `${path}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`,
    ),
  },
  {
    source: "platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use",
    check: (body) => {
      const ids = listMessages(body).flatMap(({ content }) =>
        toBlocks(content).flatMap(({ type, id }) => (type === "tool_use" ? [id] : [])),
      );
      return new Set(ids).size === ids.length ? undefined : "messages: `tool_use` ids must be unique";
    },
  },
  {
    source: "platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use",
    check: (body) => {
      const messages = listMessages(body);
      const ids = (message: Message | undefined, type: string, name: string): unknown[] =>
        toBlocks(message?.content).flatMap((block) => (block.type === type ? [block[name]] : []));
      return findFirstProblem(messages, (message, index) => {
        const calls = ids(message, "tool_use", "id");
        const results = ids(messages[index + 1], "tool_result", "tool_use_id");
        if (calls.some((id) => !results.includes(id)))
          return `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after`;
        const given = ids(message, "tool_result", "tool_use_id");
        const requested = ids(messages[index - 1], "tool_use", "id");
        if (given.some((id) => !requested.includes(id)) || new Set(given).size !== given.length)
          return `messages.${index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks`;
        const kinds = toBlocks(message.content).map(({ type }) => type === "tool_result");
        return kinds.lastIndexOf(true) >= kinds.filter(Boolean).length
          ? "tool_result blocks must come first"
          : undefined;
      });
    },
  },
  {
    source: "platform.claude.com/docs/en/api/errors",
    check: anthropicBlocks((block, path) =>
      block.type === "text" && String(block.text).trim() === ""
        ? `${path}: text content blocks must contain non-whitespace text`
        : undefined,
    ),
  },
  {
    source: "platform.claude.com/docs/en/api/messages: system",
    check: (body) =>
      findFirstProblem(toBlocks(body.system ?? []), ({ text }) =>
        String(text).trim() === "" ? "system: text content blocks must be non-empty" : undefined,
      ),
  },
  {
    source: "platform.claude.com/docs/en/api/messages",
    check: (body) =>
      findFirstProblem(listMessages(body), ({ content }, index) =>
        toBlocks(content).length === 0 ? `messages.${index}: all messages must have non-empty content` : undefined,
      ),
  },
  {
    source: "platform.claude.com/docs/en/api/errors#prefill-not-supported",
    check: (body) => {
      const last = listMessages(body).at(-1);
      const isPaused = toBlocks(last?.content).some(({ type }) => type === "server_tool_use");
      return last?.role === "assistant" && !isPaused
        ? "This model does not support assistant message prefill. The conversation must end with a user message."
        : undefined;
    },
  },
  {
    source: "platform.claude.com/docs/en/api/messages: roles",
    check: (body) =>
      listMessages(body)[0]?.role === "user" ? undefined : 'messages: first message must use the "user" role',
  },
  {
    source: `${THREAD}github.com/tailcallhq/forgecode/issues/3071`,
    check: (body) =>
      findFirstProblem(listMessages(body), ({ role, content }, index) =>
        role === "assistant" && ["thinking", "redacted_thinking"].includes(toBlocks(content).at(-1)?.type ?? "")
          ? `messages.${index}: The final block in an assistant message cannot be \`thinking\`.`
          : undefined,
      ),
  },
  {
    source: "platform.claude.com/docs/en/build-with-claude/extended-thinking",
    check: (body) =>
      findFirstProblem(listMessages(body), ({ content }, index) => {
        const types = toBlocks(content).map(({ type }) => type);
        return types.includes("thinking") && types[0] !== "thinking" && types[0] !== "redacted_thinking"
          ? `messages.${index}.content.0: If an assistant message contains any thinking blocks, the first block must be \`thinking\``
          : undefined;
      }),
  },
  {
    source: "platform.claude.com/docs/en/api/messages: tool_use.input",
    check: anthropicBlocks((block, path) =>
      block.type === "tool_use" && !isObject(block.input)
        ? `${path}.tool_use.input: Input should be a valid dictionary`
        : undefined,
    ),
  },
  {
    source: "platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use: name",
    check: namesMatch(/^[a-zA-Z0-9_-]{1,64}$/),
  },
  { source: `${THREAD}github.com/anthropics/claude-code/issues/5973`, check: rootHasNoCombinators },
  { source: `${THREAD}github.com/anthropics/claude-code/issues/34771`, check: keysMatch(/^[a-zA-Z0-9_.-]{1,64}$/) },
  { source: "platform.claude.com/docs/en/agents-and-tools/tool-use: input_schema", check: rootIsObject },
  { source: "platform.claude.com/docs/en/api/messages: tools, input_schema", check: isDraft2020 },
  { source: `${THREAD}github.com/anomalyco/opencode/issues/47543`, check: refsResolve },
  { source: "platform.claude.com/docs/en/api/messages: tools", check: namesAreUnique },
];

// OpenAI's responses.

const listItems = (body: Json): readonly Block[] => list<Block>(body.input);
const responses: readonly Rule[] = [
  {
    source: "github.com/openai/openai-openapi/blob/main/openapi.yaml: FunctionCallOutputItemParam.call_id, maxLength",
    check: (body) =>
      findFirstProblem(listItems(body), ({ call_id }, index) =>
        call_id === undefined || /^.{1,64}$/.test(String(call_id))
          ? undefined
          : `Invalid 'input[${index}].call_id': string too long. Expected a string with maximum length 64`,
      ),
  },
  {
    source: "platform.openai.com/docs/guides/function-calling",
    check: (body) => {
      const ids = (type: string) => listItems(body).flatMap((item) => (item.type === type ? [item.call_id] : []));
      const outputs = ids("function_call_output");
      const calls = ids("function_call");
      const unanswered = calls.find((id) => !outputs.includes(id));
      if (unanswered !== undefined) return `No tool output found for function call ${unanswered}.`;
      if (new Set(calls).size !== calls.length) return "Duplicate function call id.";
      const orphan = outputs.find((id) => !calls.includes(id));
      return orphan === undefined ? undefined : `No tool call found for function call output with call_id ${orphan}.`;
    },
  },
  {
    source: "platform.openai.com/docs/guides/conversation-state",
    check: (body) =>
      findFirstProblem(listItems(body), (item, index) => {
        const following = listItems(body)[index + 1];
        const isFollowed =
          following?.role === "assistant" ||
          ["function_call", "reasoning", "web_search_call"].includes(following?.type ?? "");
        return item.type === "reasoning" && !isFollowed
          ? "Item 'rs_1' of type 'reasoning' was provided without its required following item."
          : undefined;
      }),
  },
  { source: "platform.openai.com/docs/api-reference/responses/create: tools", check: limitTools(128) },
  {
    source: "platform.openai.com/docs/api-reference/responses/create: tools",
    check: namesMatch(/^[a-zA-Z0-9_-]{1,64}$/),
  },
  { source: "platform.openai.com/docs/guides/function-calling", check: rootIsObject },
  { source: "platform.openai.com/docs/guides/function-calling", check: rootHasNoCombinators },
  { source: "platform.openai.com/docs/guides/function-calling", check: arraysHaveItems },
  { source: "platform.openai.com/docs/guides/function-calling", check: objectsHaveProperties },
];

// Gemini.

type Content = { readonly role: string; readonly parts: readonly Json[] };
const listContents = (body: Json): readonly Content[] => list<Content>(body.contents);
const google: readonly Rule[] = [
  {
    source: "ai.google.dev/gemini-api/docs/function-calling; github.com/google-gemini/gemini-cli/issues/26486",
    check: (body) =>
      findFirstProblem(listContents(body), ({ role, parts }, index) => {
        const calls = parts.filter((part) => "functionCall" in part).length;
        const answers = parts.filter((part) => "functionResponse" in part).length;
        const before = listContents(body)[index - 1];
        const after = listContents(body)[index + 1];
        if (calls > 0 && (role !== "model" || before?.role !== "user"))
          return "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
        if (calls > 0 && list(after?.parts).filter((part) => "functionResponse" in part).length !== calls)
          return "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
        return answers > 0 && !list(before?.parts).some((part) => "functionCall" in part)
          ? "Please ensure that function response turn comes immediately after a function call turn."
          : undefined;
      }),
  },
  {
    source: "ai.google.dev/api/generate-content: contents",
    check: (body) =>
      listContents(body)[0]?.role === "user" && listContents(body).at(-1)?.role === "user"
        ? undefined
        : "Please ensure that multiturn requests begin and end with a user turn.",
  },
  {
    source: "ai.google.dev/api/generate-content: parts",
    check: (body) =>
      findFirstProblem(listContents(body), ({ parts }) =>
        parts.length === 0 || parts.some((part) => part.text === "" && part.thoughtSignature === undefined)
          ? "Unable to submit request because it must have a text parameter."
          : undefined,
      ),
  },
  {
    source: "ai.google.dev/gemini-api/docs/thought-signatures",
    check: (body, path) =>
      findFirstProblem(listContents(body), ({ parts }) => {
        const call = parts.find((part) => "functionCall" in part);
        return path.includes("gemini-3") && call !== undefined && call.thoughtSignature === undefined
          ? "Function call is missing a thought_signature in functionCall parts."
          : undefined;
      }),
  },
  {
    source: "cloud.google.com/vertex-ai/generative-ai/docs/reference/nodejs/latest/vertexai/functiondeclaration: name",
    check: namesMatch(/^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/),
  },
  {
    source: "cloud.google.com/vertex-ai/generative-ai/docs/reference/nodejs/latest/vertexai/functiondeclarationstool",
    check: limitTools(128),
  },
  { source: "ai.google.dev/api/caching#Schema: required", check: requiredIsKnown },
  { source: "ai.google.dev/api/caching#Schema: items", check: arraysHaveItems },
];

const formatEmptyError = (role: string, index: number): string =>
  `Invalid request: the message at position ${index} with role '${role}' must not be empty`;
const rejectImages: Check = (body) =>
  findFirstProblem(listMessages(body), ({ content }, index) =>
    Array.isArray(content) && content.some(({ type }) => type === "image_url")
      ? `Failed to deserialize the JSON body into the target type: messages[${index}]: unknown variant \`image_url\`, expected \`text\``
      : undefined,
  );

/** The validation of Mistral's own server. */
const MISTRAL = "github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py";

/** Rules by server name. */
export const RECEIVERS = {
  anthropic,
  responses,
  google,
  openai: chat,
  mistral: [
    {
      source: MISTRAL,
      check: chatIds(
        /^[a-zA-Z0-9]{9}$/,
        (id) => `Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`,
      ),
    },
    { source: MISTRAL, check: rejectUserAfterTool },
    { source: MISTRAL, check: rejectLastAssistant },
    {
      source: MISTRAL,
      check: rejectBlank(() => "Assistant message must have either content or tool_calls, but not none."),
    },
    ...templated,
    ...chat,
  ],
  deepseek: [
    { source: "api-docs.deepseek.com/api/create-chat-completion: content", check: rejectImages },
    {
      source: "api-docs.deepseek.com/guides/thinking_mode",
      check: (body) =>
        listMessages(body).some((message) => message.tool_calls !== undefined && !message.reasoning_content)
          ? "The `reasoning_content` in the thinking mode must be passed back to the API."
          : undefined,
    },
    { source: "api-docs.deepseek.com/guides/reasoning_model", check: rolesAlternate },
    ...chat,
  ],
  kimi: [
    {
      source: "github.com/MoonshotAI/Kimi-K2/blob/main/docs/tool_call_guidance.md",
      check: chatIds(/^functions\.[\w-]+:\d+$/, () => "tool_call_id must have the form functions.name:index"),
    },
    { source: "platform.moonshot.ai/docs/api/chat", check: rejectBlank(formatEmptyError) },
    { source: "platform.moonshot.ai/docs: tools, MFJS", check: typeIsInBranches },
    ...chat.filter(({ source }) => !source.includes("autogen")),
  ],
  qwen: [
    {
      source: "help.aliyun.com/zh/model-studio/error-code",
      check: rejectBlank(() => "<400> InternalError.Algo.InvalidParameter: The content field is a required field."),
    },
    ...templated,
    ...chat,
  ],
  zai: [
    {
      source: "docs.z.ai/api-reference/llm/chat-completion: error 1214",
      check: rejectBlank(() => "The messages parameter is illegal. Please check the documentation."),
    },
    ...chat,
  ],
  xai: [
    {
      source: "docs.x.ai/docs/api-reference: messages",
      check: rejectBlank(() => "Each message must have at least one content element."),
    },
    ...chat,
  ],
  groq: [
    {
      source: "console.groq.com/docs/reasoning",
      check: (body) =>
        findFirstProblem(listMessages(body), (message, index) =>
          "reasoning_content" in message
            ? `'messages.${index}' : for 'role:assistant' the following must be satisfied[('messages.${index}' : property 'reasoning_content' is unsupported)]`
            : undefined,
        ),
    },
    ...chat,
  ],
  vllm: [...templated, ...chat],
  llamacpp: [
    {
      source: "github.com/ggml-org/llama.cpp: tools/server, mmproj",
      status: 500,
      check: (body) =>
        rejectImages(body, "") &&
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
    },
    { source: "github.com/ggml-org/llama.cpp: common/json-schema-to-grammar.cpp", check: patternsAreAnchored },
    ...templated.map((rule) => ({ ...rule, status: 500 })),
    ...chat,
  ],
  ollama: [...templated, ...chat],
  lmstudio: [
    {
      source: "lmstudio.ai/docs/developer/openai-compat/chat-completions",
      check: rejectBlank(() => "'messages' array must only contain objects with a 'content' field that is not empty."),
    },
    ...templated,
    ...chat,
  ],
  tgi: [
    { source: "huggingface.co/docs/text-generation-inference/messages_api", status: 422, check: textIsOneString },
    ...templated.map((rule) => ({ ...rule, status: 422 })),
    ...chat,
  ],
} as const satisfies Readonly<Record<string, readonly Rule[]>>;
export type ReceiverName = keyof typeof RECEIVERS;

/** Returns why this server rejects the request; undefined if it accepts it. */
export const findRefusal = (name: ReceiverName, body: Json, path = ""): Refusal | undefined => {
  const rules: readonly Rule[] = RECEIVERS[name];
  for (const { status = 400, check } of [...rules, UNIQUE]) {
    const message = check(body, path);
    if (message === undefined) continue;
    return name === "anthropic"
      ? { status, body: { type: "error", error: { type: "invalid_request_error", message } } }
      : { status, body: { error: { message, type: "invalid_request_error", param: null, code: null } } };
  }
  return undefined;
};

/** Results of two calls with the same ID could not be matched. */
const UNIQUE: Rule = { source: "every API matches results by id", check: chatIdsAreUnique };
