// Calls that wait for approval: what each would do, with buttons to allow once, allow always or deny. All calls of one step are answered
// together.
import { useSignal } from "@preact/signals";
import { Fragment } from "preact";
import { useEffect } from "preact/hooks";
import { escapeAllHidden } from "#base/visible-text.ts";
import type { ChatApproval } from "#schema/chats/chat-approval.ts";
import type { ActionRequired, ToolCallRequest } from "#schema/chats/chat-event.ts";
import type { PermissionAnswers } from "#schema/chats/chat-permissions.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { DiffFile } from "../../parts/diff/diff-file.tsx";
import { parseFiles } from "../../parts/diff/diff-lines.ts";
import { Fold } from "../../parts/fold.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { onKeys } from "../../shell/keys.ts";
import { showError } from "../../shell/toasts.tsx";
import { ShellText } from "./code.tsx";
import type { LiveChat } from "./live-chat.ts";
import { pickMode } from "./modes.tsx";
import { formatAlwaysLabel, formatQuestion, parseArguments, shortenFolder, toRows } from "./permission-words.ts";

type Answer = PermissionAnswers["answers"][number];

/** A new call ignores presses for this long after the last press: they were meant for the previous call. */
const NEW_CALL_DELAY_MS = 500;

/** `isNew` is true for a moment after the call has changed; `restartDelay` starts that moment again. */
const useNewCallDelay = (id: string | undefined): { readonly isNew: boolean; readonly restartDelay: () => void } => {
  const seenId = useSignal<string | undefined>(undefined);
  const pressCount = useSignal(0);
  useEffect(() => {
    const timer = setTimeout(() => {
      seenId.value = id;
    }, NEW_CALL_DELAY_MS);
    return () => clearTimeout(timer);
  }, [id, pressCount.value]);
  const isNew = seenId.value !== id;
  const restartDelay = (): void => {
    if (isNew) pressCount.value += 1;
  };
  return { isNew, restartDelay };
};

/** A key that is held would press the button of one call after the other. */
const ignoreHeldKey = (event: KeyboardEvent): void => {
  if (event.repeat) event.preventDefault();
};

const EDIT_TOOLS: ReadonlySet<string> = new Set(["edit_files", "write_file"]);

export const Permission = ({ chat, actionRequired }: { chat: LiveChat; actionRequired: ActionRequired }) => {
  const path = { chat: chat.id };
  const ids = actionRequired.tool_calls.map(({ tool_call_id }) => tool_call_id).join(" ");
  const { state } = useResource(`approvals ${chat.id} ${ids}`, () => call("GET /chats/:chat/permissions", { path }));
  const answers = useSignal<readonly Answer[]>([]);
  const openCalls = actionRequired.tool_calls.filter(
    ({ tool_call_id }) => !answers.value.some((one) => one.tool_call_id === tool_call_id),
  );
  const [first] = openCalls;
  const preview = state.value.data?.calls.find(({ tool_call_id }) => tool_call_id === first?.tool_call_id);
  const isEdit = first !== undefined && EDIT_TOOLS.has(first.tool_name);
  // An edit can be allowed once its diff is shown, or the reason why it cannot be shown.
  const isLoadingPreview = isEdit && preview === undefined && state.value.error === undefined;
  const { isNew, restartDelay } = useNewCallDelay(first?.tool_call_id);
  const sendAnswer = async (answer: Omit<Answer, "tool_call_id">): Promise<void> => {
    restartDelay();
    if (!first || isNew || (isLoadingPreview && answer.decision === "allow")) return;
    const allAnswers = [...answers.value, { tool_call_id: first.tool_call_id, ...answer }];
    if (allAnswers.length < actionRequired.tool_calls.length) {
      answers.value = allAnswers;
      return;
    }
    await call("POST /chats/:chat/permissions", { path, body: { answers: [...allAnswers] } });
  };
  useEffect(() => {
    const stops = [
      onKeys("a", ({ repeat }) => void (repeat || sendAnswer({ decision: "allow" }).catch(showError))),
      onKeys("d", ({ repeat }) => void (repeat || sendAnswer({ decision: "deny" }).catch(showError))),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  });
  if (!first) return null;
  const mode = chat.chat.value?.permission_mode;
  const alwaysLabel = isEdit ? undefined : formatAlwaysLabel(preview?.always ?? []);
  const answeredCount = actionRequired.tool_calls.length - openCalls.length;
  return (
    <div class="ask" role="group" aria-labelledby="asked" onKeyDown={ignoreHeldKey} onClickCapture={restartDelay}>
      <div class="line">
        <span class="t-attn">
          <Icon name="key" />
        </span>
        <h3 id="asked">
          {formatQuestion(
            first,
            preview?.files?.every(({ is_new }) => is_new),
          )}
        </h3>
        {actionRequired.tool_calls.length > 1 && (
          <span class="push dim small">
            {answeredCount + 1} of {actionRequired.tool_calls.length}
          </span>
        )}
      </div>
      <CallDetails
        request={first}
        preview={preview}
        workspace_id={chat.chat.value?.workspace_id ?? undefined}
        isLoadingPreview={isLoadingPreview}
      />
      <div class="line wrap">
        <Button
          look="primary"
          keys="A"
          disabled={isLoadingPreview}
          paused={isNew}
          onPress={() => sendAnswer({ decision: "allow" })}
        >
          Allow once
        </Button>
        {alwaysLabel !== undefined && (
          <Button paused={isNew} onPress={() => sendAnswer({ decision: "allow", scope: "always" })}>
            {alwaysLabel}
          </Button>
        )}
        {isEdit && mode === "ask" && (
          <Button
            disabled={isLoadingPreview}
            paused={isNew}
            onPress={() => {
              pickMode(chat, "accept_edits");
              return sendAnswer({ decision: "allow" });
            }}
          >
            Allow and accept edits
          </Button>
        )}
        <Button look="ghost" keys="D" paused={isNew} onPress={() => sendAnswer({ decision: "deny" })}>
          Deny
        </Button>
      </div>
    </div>
  );
};

type DetailsProps = {
  readonly request: ToolCallRequest;
  readonly preview: ChatApproval | undefined;
  readonly workspace_id: string | undefined;
  readonly isLoadingPreview: boolean;
};

const CallDetails = ({ request, preview, workspace_id, isLoadingPreview }: DetailsProps) => {
  if (request.tool_name === "execute")
    return <CommandDetails request={request} preview={preview} workspace_id={workspace_id} />;
  if (isLoadingPreview) return <Skeleton lines={3} />;
  if (preview?.files) return <EditedFiles files={preview.files} />;
  return (
    <>
      {preview?.problem && <p class="t-bad wrap-any">{preview.problem}</p>}
      <Arguments request={request} />
    </>
  );
};

const EditedFiles = ({ files }: { files: NonNullable<ChatApproval["files"]> }) => (
  <>
    {files.map(({ path, diff }) => {
      const [file] = parseFiles(diff);
      return file ? (
        <DiffFile key={path} file={{ ...file, path }} isOpen />
      ) : (
        <p key={path} class="small mut wrap-any">
          <span class="mono">{escapeAllHidden(path)}</span>: no changes to show.
        </p>
      );
    })}
  </>
);

const CommandDetails = ({ request, preview, workspace_id }: Omit<DetailsProps, "isLoadingPreview">) => {
  const { command, workdir } = parseArguments(request);
  const text = typeof command === "string" ? command : request.args;
  const folder = preview?.command?.folder || (typeof workdir === "string" ? workdir : "");
  const parts = preview?.command?.parts ?? [];
  return (
    <>
      <pre class="cmd mono" tabIndex={0}>
        <ShellText text={text} />
      </pre>
      {parts.length > 1 && (
        <Fold summary={`${parts.length} commands`}>
          <ol class="parts" aria-label="Commands in it">
            {parts.map((part, index) => (
              <li key={index} class="mono wrap-any">
                <ShellText text={part} />
              </li>
            ))}
          </ol>
        </Fold>
      )}
      <p class="small mut wrap-any">
        {folder === "" ? "Runs in the workspace folder" : "Runs in "}
        {folder !== "" && (
          <span class="mono" title={escapeAllHidden(folder)}>
            {escapeAllHidden(shortenFolder(folder, workspace_id))}
          </span>
        )}
        {preview?.command?.in_background && ", in the background"}
      </p>
    </>
  );
};

/** The arguments as a filled-in form. */
const Arguments = ({ request }: { request: ToolCallRequest }) => {
  const rows = toRows(request);
  if (rows.length === 0) return <p class="small mut">No arguments.</p>;
  return (
    <dl class="kv" aria-label="Arguments">
      {rows.map(({ name, value, isText }) => (
        <Fragment key={name}>
          <dt class="wrap-any">{escapeAllHidden(name)}</dt>
          <dd class={isText ? "wrap-any pre" : "mono wrap-any pre"}>{escapeAllHidden(value)}</dd>
        </Fragment>
      ))}
    </dl>
  );
};
