// One entry of the audit log in the list.
import type { AuditLog } from "#schema/audit.ts";
import { Icon } from "../../parts/icon.tsx";
import { Time } from "../../parts/time.tsx";
import { formatActor, formatChange, formatVerb, isRefused, toTarget } from "./words.ts";

type EntryProps = {
  readonly entry: AuditLog;
  readonly href: string;
  readonly chosen: boolean;
};

export const Entry = ({ entry, href, chosen }: EntryProps) => {
  const isBad = isRefused(entry) || entry.action === "delete";
  const { kind, name } = toTarget(entry);
  return (
    <li>
      <a class="entry" href={href} aria-current={chosen ? "true" : undefined}>
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
