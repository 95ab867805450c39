// The audit log: searched by the API's own language, the filter and the chosen entry in the address, older entries on demand.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { AuditLog } from "#schema/audit.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { format, parse } from "../../parts/query.ts";
import { Search } from "../../parts/search.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Frame } from "../../shell/frame.tsx";
import { Detail } from "./detail.tsx";
import { Entry } from "./entry.tsx";
import { KEYS, valuesOf } from "./search.ts";

const PAGE = 50;

export default function AuditPage() {
  const { query, route } = useLocation();
  const q = query.q ?? "";
  const { terms, words } = parse(q);
  const typed = useSignal(words.join(" "));
  const older = useSignal<readonly AuditLog[]>([]);
  const atEnd = useSignal(false);
  const { state, again } = useResource(`audit ${q}`, () => call("GET /audit", { query: { q, limit: PAGE } }));
  const retention = useResource("audit retention", () => call("GET /audit/retention"));
  const refresh = (): Promise<void> => {
    older.value = [];
    atEnd.value = false;
    return again();
  };
  useEffect(() => {
    older.value = [];
    atEnd.value = false;
  }, [q]);

  const { data, error } = state.value;
  const entries = [...(data?.audit_logs ?? []), ...older.value];
  const chosen = entries.find(({ id }) => id === query.entry) ?? entries[0];
  const readOlder = async (): Promise<void> => {
    const after_id = entries.at(-1)?.id;
    const { audit_logs } = await call("GET /audit", { query: { q, limit: PAGE, after_id } });
    older.value = [...older.value, ...audit_logs];
    atEnd.value = audit_logs.length < PAGE;
  };
  const hasOlder = !atEnd.value && (data?.audit_logs.length ?? 0) === PAGE;
  const days = retention.state.value.data?.days;

  return (
    <Frame
      title="Audit"
      actions={
        <>
          <Button icon="restart" onPress={refresh}>
            Refresh
          </Button>
          <ButtonLink class="desk" icon="file" href={`/api/v2/audit/export?${new URLSearchParams({ q })}`}>
            Export
          </ButtonLink>
        </>
      }
    >
      <div class="filter line wrap">
        <Search
          label="Filter audit log"
          placeholder="username:me, action:delete, date_from:…"
          terms={terms}
          words={typed.value}
          keys={KEYS}
          valuesOf={valuesOf}
          onChange={(nextTerms, nextWords) => {
            typed.value = nextWords;
            // A word without a key is a kind of thing; half of one would be refused.
            if (nextTerms.length !== terms.length || nextWords === "")
              route(`/audit?${new URLSearchParams({ q: format({ terms: nextTerms, words: [] }) })}`, true);
          }}
        />
        {data && (
          <span class="dim small num desk">
            {data.count > data.count_cap ? `more than ${data.count_cap}` : data.count} entries
            {days !== undefined && (days === 0 ? ", kept for ever" : `, kept ${days} days`)}
          </span>
        )}
      </div>
      {error ? (
        <Failed what="The audit log cannot be read" error={error} again={refresh} />
      ) : data === undefined ? (
        <div class="page">
          <Skeleton lines={10} />
        </div>
      ) : chosen === undefined ? (
        <Empty icon="list" title="No entry fits" text="Whatever somebody changes, or tries to, is written down here.">
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
                  chosen={entry === chosen}
                  href={`/audit?${new URLSearchParams({ ...(q ? { q } : {}), entry: entry.id })}`}
                />
              ))}
            </ol>
            {hasOlder && (
              <p class="page">
                <Button onPress={readOlder}>Older entries</Button>
              </p>
            )}
          </div>
          <Detail entry={chosen} />
        </div>
      )}
    </Frame>
  );
}
