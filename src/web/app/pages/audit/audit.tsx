// The audit log: searched with the API's query language. The filter and the selected entry are in the address; older entries are loaded on
// demand.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import type { AuditLog, AuditRetention } from "#schema/audit.ts";
import { call } from "../../data/api.ts";
import { LiveSocket } from "../../data/live-socket.ts";
import { useResource } from "../../data/resource.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Field, Switch } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Menu } from "../../parts/menu.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Time } from "../../parts/time.tsx";
import { Frame } from "../../shell/frame.tsx";
import { DaysField } from "./days-field.tsx";
import { Detail } from "./detail.tsx";
import { LogHead } from "./log-head.tsx";
import { KEYS, listValues } from "./search.ts";
import { formatActor, formatChange, formatVerb, isRefused, toTarget } from "./words.ts";

const PAGE_SIZE = 50;
/** Maximum number of entries received while the page is open. Older ones reappear when the list is reloaded. */
const MAX_LIVE = 500;

const toExportUrl = (q: string, format: string): string => `/api/v2/audit/export?${new URLSearchParams({ q, format })}`;

export default function AuditPage() {
  const { query } = useLocation();
  const q = query.q ?? "";
  const olderEntries = useSignal<readonly AuditLog[]>([]);
  const hasAll = useSignal(false);
  const { state, reload } = useResource(`audit ${q}`, () => call("GET /audit", { query: { q, limit: PAGE_SIZE } }));
  const retention = useResource("audit retention", () => call("GET /audit/retention"));
  const liveEntries = useSignal<readonly AuditLog[]>([]);
  const isLive = useSignal(true);
  const refresh = (): Promise<void> => {
    olderEntries.value = [];
    liveEntries.value = [];
    hasAll.value = false;
    return reload();
  };
  useEffect(() => {
    olderEntries.value = [];
    liveEntries.value = [];
    hasAll.value = false;
  }, [q]);
  const isLoaded = state.value.data !== undefined && state.value.error === undefined;
  useEffect(() => {
    if (!isLive.value || !isLoaded) return;
    const getNewestId = (): string | undefined => liveEntries.value[0]?.id ?? state.value.data?.audit_logs[0]?.id;
    const socket = new LiveSocket({
      address: () => {
        const after_id = getNewestId();
        return `/api/v2/audit/watch?${new URLSearchParams({ q, ...(after_id ? { after_id } : {}) })}`;
      },
      pings: true,
      onMessage: (text) => {
        const message = JSON.parse(text) as AuditLog[] | { type: "ping" };
        if (!Array.isArray(message)) return;
        // The stream starts now because there was no entry to resume after. An entry may have been written since the list was loaded.
        if (message.length === 0) void reload();
        liveEntries.value = [...message.toReversed(), ...liveEntries.value].slice(0, MAX_LIVE);
      },
    });
    return () => socket.end();
  }, [q, isLive.value, isLoaded]);

  const { data, error } = state.value;
  const liveIds = new Set(liveEntries.value.map(({ id }) => id));
  const entries = [
    ...liveEntries.value,
    ...(data?.audit_logs ?? []).filter(({ id }) => !liveIds.has(id)),
    ...olderEntries.value,
  ];
  const selected = entries.find(({ id }) => id === query.entry) ?? entries[0];
  const backHref = q ? `/audit?${new URLSearchParams({ q })}` : "/audit";
  const loadOlder = async (): Promise<void> => {
    const after_id = entries.at(-1)?.id;
    const { audit_logs } = await call("GET /audit", { query: { q, limit: PAGE_SIZE, after_id } });
    olderEntries.value = [...olderEntries.value, ...audit_logs];
    hasAll.value = audit_logs.length < PAGE_SIZE;
  };
  const hasOlder = !hasAll.value && (data?.audit_logs.length ?? 0) === PAGE_SIZE;

  return (
    <Frame
      title="Audit"
      actions={
        <>
          <Switch
            label="Live"
            checked={isLive.value}
            onSwitch={(isOn) => {
              isLive.value = isOn;
              if (isOn) void refresh();
            }}
          />
          <Menu
            label="Export"
            items={() => [
              { icon: "file", label: "CSV", href: toExportUrl(q, "csv"), newTab: true },
              { icon: "file", label: "JSON lines", href: toExportUrl(q, "ndjson"), newTab: true },
            ]}
          >
            <Icon name="file" />
            <span class="desk">Export</span>
            <span class="vh phone">Export</span>
          </Menu>
        </>
      }
    >
      <LogHead
        label="Filter audit log"
        placeholder="username:me, action:delete, date_from:…"
        keys={KEYS}
        listValues={listValues}
        href="/audit"
        q={q}
        nouns={["entry", "entries"]}
        count={data}
        retention={retention}
        Form={RetentionForm}
      />
      {error ? (
        <Failed title="Can't load the audit log" error={error} reload={refresh} />
      ) : data === undefined ? (
        <div class="page">
          <Skeleton lines={10} />
        </div>
      ) : selected === undefined ? (
        <Empty icon="list" title="No matching entries" text="Every change and attempted change is recorded here.">
          {q !== "" && <ButtonLink href="/audit">Show all</ButtonLink>}
        </Empty>
      ) : (
        <div class="audit">
          <div>
            <ol class="entries" aria-label="Entries">
              {entries.map((entry) => (
                <Entry
                  key={entry.id}
                  entry={entry}
                  isSelected={entry === selected}
                  href={`/audit?${new URLSearchParams({ ...(q ? { q } : {}), entry: entry.id })}`}
                />
              ))}
            </ol>
            {hasOlder && (
              <p class="page">
                <Button onPress={loadOlder}>Older entries</Button>
              </p>
            )}
          </div>
          <Detail entry={selected} isSelected={selected.id === query.entry} backHref={backHref} />
        </div>
      )}
    </Frame>
  );
}

// One entry of the audit log in the list.
type EntryProps = {
  readonly entry: AuditLog;
  readonly href: string;
  readonly isSelected: boolean;
};

const Entry = ({ entry, href, isSelected }: EntryProps) => {
  const isBad = isRefused(entry) || entry.action === "delete";
  const { kind, name } = toTarget(entry);
  return (
    <li>
      <a class="entry" href={href} aria-current={isSelected ? "true" : undefined}>
        <Time class="dim small" at={entry.time} />
        <span class="avatar" aria-hidden="true">
          {entry.user ? (
            entry.user.username.slice(0, 2).toUpperCase()
          ) : (
            <Icon name={entry.ip ? "warn" : "clock"} small />
          )}
        </span>
        <span class="clip">
          <b class="med">{formatActor(entry)}</b> <span class={isBad ? "t-bad" : "mut"}>{formatVerb(entry)}</span>{" "}
          <span class="dim">{kind}</span> {name}
        </span>
        <span class="dim small clip x">{isRefused(entry) ? entry.status_code : formatChange(entry)}</span>
      </a>
    </li>
  );
};

// Retention of all audit entries, and of sign-in and sign-out entries.
const RetentionForm = ({ retention, onClose }: { retention: AuditRetention; onClose: () => void }) => (
  <FormDialog
    title="Retention"
    submitLabel="Save retention"
    onClose={onClose}
    act={async ({ days = "", sign_in_days = "" }) => {
      const sign_in = sign_in_days.trim() === "" ? null : Number(sign_in_days);
      await call("PUT /audit/retention", { body: { ...retention, days: Number(days), sign_in_days: sign_in } });
    }}
  >
    {(problems) => (
      <>
        <DaysField
          days={retention.days}
          hint="0 keeps entries forever. Older entries are permanently deleted within an hour."
          error={problems.days}
        />
        <Field
          label="Days for sign-ins and sign-outs"
          name="sign_in_days"
          type="number"
          min={0}
          max={36_500}
          defaultValue={retention.sign_in_days ?? ""}
          hint="Defaults to the value above."
          error={problems.sign_in_days}
        />
      </>
    )}
  </FormDialog>
);
