// One audit entry in detail: each changed field, the address, and the request.
import type { AuditLog } from "#schema/audit.ts";
import { chats } from "../../data/chats.ts";
import { copyText } from "../../parts/as-command.tsx";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { formatExactTime, Time } from "../../parts/time.tsx";
import { hasPage } from "../../shell/page-list.ts";
import { formatKind, formatSentence, formatValue } from "./words.ts";

const NIL_ID = "00000000-0000-0000-0000-000000000000";

type DetailProps = {
  readonly entry: AuditLog;
  /** Whether the user selected the entry. If not, it is the first entry, shown only on screens wide enough for the list and the entry. */
  readonly isSelected: boolean;
  /** The URL of the page with no entry selected. */
  readonly backHref: string;
};

export const Detail = ({ entry, isSelected, backHref }: DetailProps) => (
  <aside class={isSelected ? "detail" : "detail first"} aria-label="Entry">
    <div class="stack loose">
      <div>
        <div class="head">
          <h2>{formatSentence(entry)}</h2>
          <a class="btn icon ghost push phone" href={backHref} aria-label="Close entry">
            <Icon name="x" />
          </a>
        </div>
        <p class="mut">{formatExactTime(entry.time)}</p>
        <p class="dim small">
          <Time at={entry.time} />
        </p>
      </div>
      <Changes entry={entry} />
      <dl class="kv small">
        <FactRow name="Address" value={entry.ip} mono />
        <FactRow name="User agent" value={entry.user_agent} />
        <FactRow name="Organization" value={entry.organization?.display_name || entry.organization?.name} />
        <FactRow name="Status" value={String(entry.status_code)} />
        <FactRow name="Request ID" value={entry.request_id === NIL_ID ? undefined : entry.request_id} mono />
        <FactRow name="Entry ID" value={entry.id} mono />
      </dl>
      <div class="line wrap">
        <Button icon="copy" onPress={() => copyText(JSON.stringify(entry, undefined, 2))}>
          Copy as JSON
        </Button>
        {entry.resource_id !== NIL_ID && (
          <ButtonLink look="ghost" href={`/audit?${new URLSearchParams({ q: `resource_id:${entry.resource_id}` })}`}>
            Show entries for this {formatKind(entry)}
          </ButtonLink>
        )}
        {entry.resource_type === "workspace" && !entry.is_deleted && hasPage("/workspaces") && (
          <ButtonLink look="ghost" href={`/workspaces/${entry.resource_id}`}>
            Open workspace
          </ButtonLink>
        )}
        {entry.resource_type === "chat" && chats.value.has(entry.resource_id) && (
          <ButtonLink look="ghost" href={`/chats/${entry.resource_id}`}>
            Open chat
          </ButtonLink>
        )}
      </div>
    </div>
  </aside>
);

const FactRow = ({ name, value, mono }: { name: string; value: string | null | undefined; mono?: boolean }) =>
  value ? (
    <>
      <dt>{name}</dt>
      <dd class={mono ? "mono" : undefined}>{value}</dd>
    </>
  ) : null;

const Changes = ({ entry }: { entry: AuditLog }) => {
  const fields = Object.entries(entry.diff);
  if (fields.length === 0) return null;
  return (
    <section class="scroll" tabIndex={0} aria-label="Changed fields">
      <table class="table fields">
        <thead>
          <tr>
            <th>Field</th>
            <th>Before</th>
            <th>After</th>
          </tr>
        </thead>
        <tbody>
          {fields.map(([name, change]) => (
            <tr key={name}>
              <td>{name}</td>
              {change.secret ? (
                <td class="dim" colSpan={2}>
                  changed (hidden)
                </td>
              ) : (
                <>
                  <td>
                    <del>{formatValue(change.old)}</del>
                  </td>
                  <td>
                    <ins>{formatValue(change.new)}</ins>
                  </td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
};
