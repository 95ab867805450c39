// A tool call: a one-line summary, live output while it runs, its diff after an edit, and all details on demand.
import { useSignal } from "@preact/signals";
import { escapeInvisible } from "#base/visible-text.ts";
import type { ChatMessagePart } from "#schema/chats/chat-part.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { Diff } from "../../parts/diff/diff.tsx";
import { parseFiles } from "../../parts/diff/diff-lines.ts";
import { Failed } from "../../parts/empty.tsx";
import { Fold } from "../../parts/fold.tsx";
import { formatDuration } from "../../parts/format-time.ts";
import { setTo } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { State } from "../../parts/state.tsx";
import { now } from "../../parts/time.tsx";
import { focusComposer, sendText } from "./actions.ts";
import { isAnswered } from "./is-answered.ts";
import type { LiveChat } from "./live-chat.ts";
import { Markdown } from "./markdown.tsx";
import { Questions } from "./questions.tsx";
import { describeTool, parseArgs, toOutcome } from "./tool-words.ts";

type ToolProps = { readonly chat: LiveChat; readonly part: ChatMessagePart; readonly isLive: boolean };

export const Tool = ({ chat, part, isLive }: ToolProps) => {
  const name = part.tool_name ?? "";
  const id = part.tool_call_id ?? "";
  const result = chat.results.value.get(id);
  if (result && !result.is_error && name === "ask_user_question") return <Questions chat={chat} part={result} />;
  if (result && !result.is_error && name === "propose_plan") return <Plan chat={chat} part={result} />;
  if (name === "chat_summarized" || name === "chat_cleared")
    return <ContextChange name={name} result={result} isBusy={chat.isBusy.value} />;
  return <ToolCall chat={chat} part={part} isLive={isLive} result={result} />;
};

const ToolCall = ({ chat, part, isLive, result }: ToolProps & { result: ChatMessagePart | undefined }) => {
  const name = part.tool_name ?? "";
  const liveResult = result ? undefined : chat.liveResults.value.get(part.tool_call_id ?? "");
  const resultPart = result ?? liveResult?.part;
  const { icon, verb, isCode, ...described } = describeTool(name, parseArgs(part));
  const target = escapeInvisible(described.target);
  const { output, error, diffs, took_ms, exit_code } = toOutcome(name, resultPart);
  const text = resultPart ? output : (liveResult?.text ?? "");
  const files = diffs.flatMap(parseFiles);
  const isRunning = !resultPart && (isLive || chat.isBusy.value);
  const isWaitingForApproval = isRunning && chat.status.value === "requires_action";
  const hasDetails = text !== "" || files.length > 0 || error !== "" || target.includes("\n");
  // Expanded while it runs and after an edit, unless the user chooses otherwise.
  const isOpenByUser = useSignal<boolean | undefined>(undefined);
  const isOpen = hasDetails && (isOpenByUser.value ?? (isRunning || files.length > 0));
  const [added, removed] = [sumLines(files, "added"), sumLines(files, "removed")];
  const runningMs = part.created_at ? now.value - Date.parse(part.created_at) : 0;
  const hasFailed = error !== "" || (exit_code !== undefined && exit_code !== 0);
  const summary = (
    <>
      {isWaitingForApproval ? (
        <State kind="needs" />
      ) : isRunning ? (
        <State kind="busy" />
      ) : hasFailed ? (
        <State kind="failed" />
      ) : (
        <Icon name={icon} />
      )}
      <span class="clip">
        {verb} {isCode ? <span class="mono">{target.split("\n")[0]}</span> : target}
      </span>
      <span class="push line small num">
        {!isOpen && error !== "" && <span class="t-bad clip">{error.split(/(?<=\.)\s|\n/)[0]}</span>}
        {exit_code !== undefined && exit_code !== 0 && <span class="t-bad">exit {exit_code}</span>}
        {files.length > 0 && (
          <>
            {added > 0 && <span class="plus">+{added}</span>}
            {removed > 0 && <span class="minus">−{removed}</span>}
          </>
        )}
        {took_ms !== undefined && took_ms >= 1_000 && <span class="dim">{formatDuration(took_ms)}</span>}
        {isRunning && runningMs > 2_000 && <span class="dim">{formatDuration(runningMs)}</span>}
      </span>
    </>
  );
  return (
    <div class={isOpen ? "tool" : "tool plain"}>
      <header>
        {hasDetails ? (
          <button type="button" class="turn" aria-expanded={isOpen} onClick={setTo(isOpenByUser, !isOpen)}>
            {summary}
          </button>
        ) : (
          <span class="turn">{summary}</span>
        )}
      </header>
      {isOpen && target.includes("\n") && <ToolOutput label={`${verb}: full output`} text={target} />}
      {isOpen &&
        files.map(({ path, lines }) => <Diff key={path} label={`Edit of ${escapeInvisible(path)}`} lines={lines} />)}
      {isOpen && text !== "" && (
        <ToolOutput label={isRunning ? "Live output" : "Output"} text={text} isLive={isRunning} />
      )}
      {isOpen && error !== "" && <p class="t-bad pad">{error}</p>}
    </div>
  );
};

const sumLines = (files: readonly { added: number; removed: number }[], name: "added" | "removed"): number =>
  files.reduce((total, file) => total + file[name], 0);

/** Keeps the end of growing output in view. */
const ToolOutput = ({ label, text, isLive = false }: { label: string; text: string; isLive?: boolean }) => (
  <div
    class="log"
    tabIndex={0}
    role="region"
    aria-label={label}
    ref={(element) => {
      if (element && isLive) element.scrollTop = element.scrollHeight;
    }}
  >
    <div>{text.replace(/\n$/, "")}</div>
  </div>
);

/** Marks where the chat's context was summarized or cleared. */
const ContextChange = ({
  name,
  result,
  isBusy,
}: {
  name: string;
  result: ChatMessagePart | undefined;
  isBusy: boolean;
}) => {
  const { summary, source, usage_percent } = (result?.result ?? {}) as Record<string, unknown>;
  if (name === "chat_cleared")
    return <p class="cut-line">Context cleared. The model doesn't see anything above this line.</p>;
  return (
    <Fold
      summary={
        <>
          {result ? "Summarized" : isBusy ? "Summarizing…" : "Not summarized"}
          {source === "automatic" && typeof usage_percent === "number" && ` at ${usage_percent} % of the context`}
        </>
      }
    >
      <div class="prose">
        <p class="pre">
          {typeof summary === "string"
            ? summary
            : result
              ? "The model continues from a summary of the messages above."
              : "The messages above are unchanged."}
        </p>
      </div>
    </Fold>
  );
};

// A plan proposed by the model, to approve or change. Approving sends a message that ends plan mode.
const loadPlan = async (id: string): Promise<string> => {
  const response = await fetch(`/api/v2/chats/files/${id}`);
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  return response.text();
};

const Plan = ({ chat, part }: { chat: LiveChat; part: ChatMessagePart }) => {
  const { file_id = "", path = "" } = (part.result ?? {}) as { file_id?: string; path?: string };
  const { state, reload } = useResource(`plan ${file_id}`, () => loadPlan(file_id));
  const { data, error } = state.value;
  const isDone = isAnswered(chat, part);
  return (
    <div class={isDone ? "ask done" : "ask"} role="group" aria-label="Plan">
      <div class="line">
        <Icon name="list" />
        <h3>Plan</h3>
        <span class="trail dim small mono clip" title={path}>
          {path.split("/").at(-1)}
        </span>
      </div>
      {error !== undefined && data === undefined && (
        <Failed title="Can't load the plan" error={error} reload={reload} />
      )}
      <div class="prose">{data !== undefined && <Markdown text={data} />}</div>
      {!isDone && (
        <div class="line wrap">
          <Button look="primary" onPress={() => sendText(chat, "Go ahead with the plan.", { plan_mode: "" })}>
            Approve and start
          </Button>
          <Button onPress={focusComposer}>Request changes</Button>
        </div>
      )}
    </div>
  );
};
