// The connection log: searched with the API's query language. The filter is in the address; older entries are loaded on demand.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import type { ConnectionLog, ConnectionRetention } from "#schema/connections.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Frame } from "../../shell/frame.tsx";
import { DaysField } from "../audit/days-field.tsx";
import { LogHead } from "../audit/log-head.tsx";
import { Entry } from "./entry.tsx";
import { KEYS, listValues } from "./search.ts";

const PAGE_SIZE = 50;

export default function ConnectionsPage() {
  const { query } = useLocation();
  const q = query.q ?? "";
  const olderEntries = useSignal<readonly ConnectionLog[]>([]);
  const hasAll = useSignal(false);
  const { state, reload } = useResource(`connections ${q}`, () =>
    call("GET /connectionlog", { query: { q, limit: PAGE_SIZE } }),
  );
  const retention = useResource("connection retention", () => call("GET /connectionlog/retention"));
  const refresh = (): Promise<void> => {
    olderEntries.value = [];
    hasAll.value = false;
    return reload();
  };
  useEffect(() => {
    olderEntries.value = [];
    hasAll.value = false;
  }, [q]);

  const { data, error } = state.value;
  const entries = [...(data?.connection_logs ?? []), ...olderEntries.value];
  const loadOlder = async (): Promise<void> => {
    const after_id = entries.at(-1)?.id;
    const { connection_logs } = await call("GET /connectionlog", { query: { q, limit: PAGE_SIZE, after_id } });
    olderEntries.value = [...olderEntries.value, ...connection_logs];
    hasAll.value = connection_logs.length < PAGE_SIZE;
  };
  const hasOlder = !hasAll.value && (data?.connection_logs.length ?? 0) === PAGE_SIZE;

  return (
    <Frame title="Connections" actions={<Button onPress={refresh}>Refresh</Button>}>
      <LogHead
        label="Filter connections"
        placeholder="username:me, type:ssh, status:ongoing…"
        keys={KEYS}
        listValues={listValues}
        href="/connections"
        q={q}
        nouns={["connection", "connections"]}
        count={data}
        retention={retention}
        Form={RetentionForm}
      />
      {error ? (
        <Failed title="Can't load the connection log" error={error} reload={refresh} />
      ) : data === undefined ? (
        <div class="page">
          <Skeleton lines={10} />
        </div>
      ) : entries.length === 0 ? (
        <Empty
          icon="plug"
          title="No matching connections"
          text="Connections to workspaces over SSH, editors, terminals, apps and ports are recorded here."
        >
          {q !== "" && <ButtonLink href="/connections">Show all</ButtonLink>}
        </Empty>
      ) : (
        <div class="page">
          <ul class="panel list" aria-label="Connections">
            {entries.map((entry) => (
              <Entry key={entry.id} entry={entry} />
            ))}
          </ul>
          {hasOlder && (
            <p>
              <Button onPress={loadOlder}>Older connections</Button>
            </p>
          )}
        </div>
      )}
    </Frame>
  );
}

// The dialog for the connection log's retention period.
const RetentionForm = ({ retention, onClose }: { retention: ConnectionRetention; onClose: () => void }) => (
  <FormDialog
    title="Retention"
    submitLabel="Save retention"
    onClose={onClose}
    act={async ({ days = "" }) => {
      await call("PUT /connectionlog/retention", { body: { days: Number(days) } });
    }}
  >
    {(problems) => (
      <DaysField
        days={retention.days}
        hint="0 keeps entries forever. Older entries are permanently deleted within minutes."
        error={problems.days}
      />
    )}
  </FormDialog>
);
