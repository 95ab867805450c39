// The latest gateway calls, and their recordings for owners.
import { useSignal } from "@preact/signals";
import type { GatewayCall } from "#schema/ai/gateway.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Failed } from "../../parts/empty.tsx";
import { formatDuration } from "../../parts/format-time.ts";
import { setTo } from "../../parts/handlers.ts";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Time } from "../../parts/time.tsx";
import { formatMoney, formatShortCount } from "./figures.ts";
import { formatAnswer, formatPrompt } from "./recorded-text.ts";

const PAGE_SIZE = 20;

const OUTCOMES: Readonly<Record<GatewayCall["outcome"], string>> = {
  ok: "Succeeded",
  failed: "Failed",
  aborted: "Canceled",
  lost: "Interrupted",
};

/** Without `user_id`, shows everyone's calls, for owners, who may read recordings. */
export const GatewayCallsPanel = ({ user_id }: { readonly user_id?: string | undefined }) => {
  const olderCalls = useSignal<readonly GatewayCall[]>([]);
  const nextBefore = useSignal<number | undefined>(undefined);
  const openCall = useSignal<GatewayCall | undefined>(undefined);
  const query = { limit: PAGE_SIZE, user_id };
  const { state, reload } = useResource(`gateway calls ${user_id ?? ""}`, async () => {
    const page = await call("GET /ai/calls", { query });
    olderCalls.value = [];
    nextBefore.value = page.next_before;
    return page.calls;
  });
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load calls" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const loadOlder = async (): Promise<void> => {
    const page = await call("GET /ai/calls", { query: { ...query, before: nextBefore.value } });
    olderCalls.value = [...olderCalls.value, ...page.calls];
    nextBefore.value = page.next_before;
  };
  const calls = [...data, ...olderCalls.value];
  const canReadRecordings = user_id === undefined;
  return (
    <section class="panel" aria-label="Calls of the AI gateway">
      <header>
        <h2>Calls of the AI gateway</h2>
      </header>
      {calls.length === 0 ? (
        <p class="pad dim">No calls yet.</p>
      ) : (
        <div class="body scroll" tabIndex={0} role="region" aria-label="Table: Calls of the AI gateway">
          <table class="table">
            <thead>
              <tr>
                <th>When</th>
                {canReadRecordings && <th>Person</th>}
                <th>Model</th>
                <th>Outcome</th>
                <th class="r">Input</th>
                <th class="r">Output</th>
                <th class="r">Took</th>
                <th class="r">Cost</th>
              </tr>
            </thead>
            <tbody>
              {calls.map((one) => (
                <tr key={one.id}>
                  <td>
                    <span class="line">
                      <Time at={one.created_at} />
                      {one.is_recorded && canReadRecordings && (
                        <Button small label={`Read call ${one.id}`} onPress={setTo(openCall, one)}>
                          Read
                        </Button>
                      )}
                      {one.is_recorded && !canReadRecordings && <span class="dim">Recorded</span>}
                    </span>
                  </td>
                  {canReadRecordings && <td>{one.username || "Deleted person"}</td>}
                  <td>{one.model}</td>
                  <td class={one.outcome === "ok" ? undefined : "t-bad"}>{OUTCOMES[one.outcome]}</td>
                  <td class="r num">
                    {formatShortCount(one.input_tokens + one.cache_read_tokens + one.cache_creation_tokens)}
                  </td>
                  <td class="r num">{formatShortCount(one.output_tokens)}</td>
                  <td class="r num">{one.duration_ms === null ? "" : formatDuration(one.duration_ms)}</td>
                  <td class="r num">{one.cost_micros === null ? "no price" : formatMoney(one.cost_micros)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {nextBefore.value !== undefined && (
        <div class="pad">
          <Button onPress={loadOlder}>Older calls</Button>
        </div>
      )}
      {openCall.value && <RecordingDialog of={openCall.value} onClose={setTo(openCall, undefined)} />}
    </section>
  );
};

const RecordingDialog = ({ of: one, onClose }: { readonly of: GatewayCall; readonly onClose: () => void }) => {
  const { state, reload } = useResource(`recording ${one.id}`, () =>
    call("GET /ai/calls/:call/recording", { path: { call: String(one.id) } }),
  );
  const { data, error } = state.value;
  return (
    <Dialog title={`Call of ${one.username} to ${one.model}`} onClose={onClose} class="wide">
      <p class="small mut">The audit log records that you read this.</p>
      {error ? (
        <Failed title="Can't load the recording" error={error} reload={reload} />
      ) : data ? (
        <>
          <RecordingText title="Answer" text={formatAnswer(data.answer)} />
          <RecordingText title="Prompt" text={formatPrompt(data.prompt)} />
        </>
      ) : (
        <Skeleton lines={8} />
      )}
    </Dialog>
  );
};

const RecordingText = ({ title, text }: { readonly title: string; readonly text: string }) => (
  <section class="stack" aria-label={title}>
    <h3>{title}</h3>
    <pre class="cmd mono" tabIndex={0}>
      {text === "" ? "Empty" : text}
    </pre>
  </section>
);
