// Lifecycle hooks: the endpoint from the settings, whether it responds, and its decisions.
import { useSignal } from "@preact/signals";
import type { HookDispatch } from "#schema/chats/hook-dispatch.ts";
import type { HookEvent } from "#schema/chats/hook-event.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Select } from "../../parts/field.tsx";
import { formatDuration } from "../../parts/format-time.ts";
import { writeTo } from "../../parts/handlers.ts";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { showError, showToast } from "../../shell/toasts.tsx";

const EVENTS: readonly HookEvent[] = [
  ...(["session_start", "user_prompt_submit", "pre_tool_use", "post_tool_use"] as const),
  ...(["pre_compact", "post_compact", "stop"] as const),
];
const PAGE_SIZE = 50;

export const Hooks = () => {
  const consumer = useResource("hook consumer", () => call("GET /hooks/consumer"));
  const { data, error } = consumer.state.value;
  if (error) return <Failed title="Can't load the consumer" error={error} reload={consumer.reload} />;
  if (!data) return <Skeleton lines={6} />;
  const testConsumer = async (): Promise<void> => {
    const { works, problem, took_ms } = await call("POST /hooks/consumer/try");
    if (works) showToast(`The consumer responded in ${formatDuration(took_ms)}`);
    else showError(new Error(`The consumer didn't return a valid response. ${problem ?? ""}`));
  };
  return (
    <>
      <section class="panel" aria-labelledby="consumer">
        <header>
          <h2 id="consumer">Consumer</h2>
          {data.configured && (
            <span class="push">
              <Button small onPress={testConsumer}>
                Try it
              </Button>
            </span>
          )}
        </header>
        <div class="body">
          {data.configured ? (
            <dl class="kv">
              <dt>State</dt>
              <dd>
                <State kind={data.enabled ? "running" : "stopped"}>
                  {data.enabled ? (data.mode === "enforce" ? "Enforcing" : "Observing") : "Off"}
                </State>
              </dd>
              <dt>Address</dt>
              <dd class="mono">{data.url}</dd>
              <dt>Timeout</dt>
              <dd>{formatDuration(data.timeout_ms)}</dd>
              <dt>Ledger</dt>
              <dd>
                {data.ledger_days} days{data.keeps_contents ? ", including contents" : ", without contents"}
              </dd>
              {data.has_previous_secret && (
                <>
                  <dt>Secret</dt>
                  <dd>Rotation in progress: the previous secret is still accepted</dd>
                </>
              )}
            </dl>
          ) : (
            <p class="mut">
              No consumer is configured. A consumer is a program of yours that receives the prompts, tool calls and
              turns of chats and can block them. Set <code>hook_url</code> and <code>hook_secret</code> to connect one.
            </p>
          )}
        </div>
      </section>
      <Ledger />
    </>
  );
};

const Ledger = () => {
  const event = useSignal("");
  const olderDispatches = useSignal<readonly HookDispatch[]>([]);
  const hasMore = useSignal(false);
  const query = { limit: PAGE_SIZE, event: event.value || undefined };
  const { state, reload } = useResource(`hooks ${event.value}`, async () => {
    const page = await call("GET /hooks/dispatches", { query });
    olderDispatches.value = [];
    hasMore.value = page.has_more;
    return page.dispatches;
  });
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load the ledger" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const dispatches = [...data, ...olderDispatches.value];
  const loadOlder = async (): Promise<void> => {
    const after_id = dispatches.at(-1)?.id;
    const page = await call("GET /hooks/dispatches", { query: { ...query, after_id } });
    olderDispatches.value = [...olderDispatches.value, ...page.dispatches];
    hasMore.value = page.has_more;
  };
  return (
    <section class="stack" aria-labelledby="ledger">
      <div class="head">
        <h2 id="ledger">Decisions</h2>
        <span class="push line">
          <Button icon="restart" onPress={reload}>
            Refresh
          </Button>
        </span>
      </div>
      <Select
        label="Event"
        value={event.value}
        choices={[{ value: "", label: "All" }, ...EVENTS.map((value) => ({ value, label: value }))]}
        onPick={writeTo(event)}
      />
      {dispatches.length === 0 ? (
        <Empty icon="list" title="No requests yet" text="Every hook request and its decision is recorded here." />
      ) : (
        <section class="panel scroll" tabIndex={0} aria-label="Hook requests">
          <table class="table">
            <thead>
              <tr>
                <th>When</th>
                <th>Event</th>
                <th>Result</th>
                <th>Chat</th>
                <th class="r">Took</th>
              </tr>
            </thead>
            <tbody>
              {dispatches.map((one) => (
                <tr key={one.id}>
                  <td>
                    <Time at={one.created_at} />
                  </td>
                  <td>
                    {one.event}
                    {one.tool_name && <span class="dim"> {one.tool_name}</span>}
                  </td>
                  <td class={/^(deny|none|allow|rewrite)$/.test(one.result) ? undefined : "t-bad"}>
                    {one.result.replaceAll("_", " ")}
                    {one.mode === "observe" && <span class="dim"> observed</span>}
                  </td>
                  <td>
                    <a href={`/chats/${one.chat_id}`}>{one.chat_id.slice(0, 8)}</a>
                  </td>
                  <td class="r">{formatDuration(one.duration_ms)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {hasMore.value && (
        <div>
          <Button onPress={loadOlder}>Older requests</Button>
        </div>
      )}
    </section>
  );
};
