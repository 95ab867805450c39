// One workspace in the list.
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { canStart, explainState, formatStatus, getWorkspaceState } from "../../data/states.ts";
import * as actions from "../../data/workspace-actions.ts";
import { IconButton } from "../../parts/button.tsx";
import { formatDuration, formatShortTime } from "../../parts/format-time.ts";
import { Icon } from "../../parts/icon.tsx";
import { Menu } from "../../parts/menu.tsx";
import { State } from "../../parts/state.tsx";
import { now, Time } from "../../parts/time.tsx";
import { hasPage } from "../../shell/page-list.ts";
import { listAppItems, listMenuItems } from "./row-menu.ts";

const DEADLINE_WARNING_MS = 30 * 60_000;

/** Shows when the workspace stops or starts automatically; imminent times are highlighted. */
export const Schedule = ({ row }: { row: WorkspaceSummary }) => {
  const nowMs = now.value;
  if (row.deleting_at) return <span class="t-attn">Deleted {formatShortTime(Date.parse(row.deleting_at), nowMs)}</span>;
  if (row.status === "running" && row.deadline) {
    const leftMs = Date.parse(row.deadline) - nowMs;
    const text =
      leftMs < 12 * 3_600_000
        ? `Stops in ${formatDuration(Math.max(0, leftMs))}`
        : `Stops ${formatShortTime(nowMs + leftMs, nowMs)}`;
    return <span class={leftMs < DEADLINE_WARNING_MS ? "t-attn" : undefined}>{text}</span>;
  }
  if (row.status === "running") return <>Autostop off</>;
  if (row.next_start_at) return <>Starts {formatShortTime(Date.parse(row.next_start_at), nowMs)}</>;
  return null;
};

type RowProps = {
  readonly row: WorkspaceSummary;
  readonly index: number;
  readonly isSelected: boolean;
  readonly showsOwner: boolean;
  /** The list is scrolling: interactive elements, which are half of a row, are omitted. */
  readonly isScrolling: boolean;
  readonly onSelect: (row: WorkspaceSummary, isSelected: boolean, isRange: boolean) => void;
};

export const Row = ({ row, index, isSelected, showsOwner, isScrolling, onSelect }: RowProps) => {
  const kind = getWorkspaceState(row);
  const isBad = kind === "failed";
  return (
    <div role="row" aria-rowindex={index + 2} aria-selected={isSelected}>
      <span role="cell">
        <span class="tap">
          <input
            type="checkbox"
            aria-label={`Select ${row.name}`}
            checked={isSelected}
            onClick={(event) => onSelect(row, event.currentTarget.checked, event.shiftKey)}
          />
        </span>
      </span>
      <span class="cell" role="cell">
        <State kind={kind} />
        <a class="name clip" href={`/workspaces/${row.id}`}>
          {row.name}
        </a>
        {row.favorite && (
          <span class="dim" title="Pinned">
            <Icon name="pin" small />
          </span>
        )}
        {showsOwner && <span class="dim small clip">{row.owner_name}</span>}
      </span>
      <span class="cell tpl" role="cell">
        <span class="mut clip">{row.template_display_name || row.template_name}</span>
        {row.outdated ? (
          <span class="badge busy">
            <Icon name="up" />
            outdated
          </span>
        ) : (
          <span class="dim small clip">{row.template_version_name}</span>
        )}
      </span>
      <span class="cell why" role="cell">
        <span class={isBad ? "t-bad" : undefined}>{formatStatus(row, kind)}</span>
        <span class="dim clip small">{explainState(row)}</span>
      </span>
      <span class="cell opt small mut" role="cell">
        <Schedule row={row} />
      </span>
      <span class="cell opt small dim" role="cell">
        <Time at={row.last_used_at} />
      </span>
      <span class="cell acts" role="cell">
        {!isScrolling && <RowActions key={row.id} row={row} />}
      </span>
    </div>
  );
};

const RowActions = ({ row }: { row: WorkspaceSummary }) => {
  const [agent] = row.agents;
  return (
    <>
      {agent && row.status === "running" && hasPage("/terminals/:agent") && (
        <a class="btn icon ghost sm" href={`/terminals/${agent.id}`} aria-label={`Terminal of ${row.name}`}>
          <Icon name="terminal" />
        </a>
      )}
      {row.status === "running" && hasPage("/chats") && (
        <a class="btn icon ghost sm" href={`/chats?workspace=${row.id}`} aria-label={`New chat in ${row.name}`}>
          <Icon name="chat" />
        </a>
      )}
      {row.status === "running" ? (
        <IconButton icon="stop" small label={`Stop ${row.name}`} onPress={() => actions.stopWorkspace(row)} />
      ) : (
        canStart(row) && (
          <IconButton icon="play" small label={`Start ${row.name}`} onPress={() => actions.startWorkspace(row)} />
        )
      )}
      <Menu label={`More for ${row.name}`} small items={() => listMenuItems(row)} loadMore={() => listAppItems(row)} />
    </>
  );
};
