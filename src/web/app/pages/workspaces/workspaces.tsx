// The list of workspaces: live, filtered while the user types, with actions for one and many. The reference example of a page
// (src/web/app/README.md).
import { signal, useComputed, useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { call } from "../../data/api.ts";
import { me } from "../../data/session.ts";
import { workspacesByUse, workspacesLoaded } from "../../data/workspaces.ts";
import { ButtonLink } from "../../parts/button.tsx";
import { Empty } from "../../parts/empty.tsx";
import { format, parse } from "../../parts/query.ts";
import { Search } from "../../parts/search.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { VirtualList } from "../../parts/virtual-list/virtual-list.tsx";
import { Frame } from "../../shell/frame.tsx";
import { showError } from "../../shell/toasts.tsx";
import { Bulk } from "./bulk.tsx";
import { filterWorkspaces, isRemote, KEYS, listValues } from "./filter.ts";
import { ForkDialog } from "./fork.tsx";
import { Row } from "./row.tsx";
import { SavedFilters } from "./saved-filters.tsx";

const ROW_PX = 36;
/** On these screens rows have two lines and are measured. */
const narrowQuery = matchMedia("(width < 60rem), (pointer: coarse)");
const isNarrow = signal(narrowQuery.matches);
narrowQuery.addEventListener("change", () => {
  isNarrow.value = narrowQuery.matches;
});

type RenderedRow = { readonly key: string; readonly isPassing: boolean; readonly node: VNode };
/** Maximum number of results for a search on the server. */
const MAX_REMOTE_RESULTS = 1_000;
/** Debounce delay for input. */
const DEBOUNCE_MS = 200;

export default function WorkspacesPage() {
  const { query, path, route } = useLocation();
  const { q, go, filter, isTyping } = useSearchText(query.q ?? "owner:me", (next) =>
    route(`${path}?${new URLSearchParams({ q: next })}`, true),
  );
  const { terms, words } = parse(q);
  // The input may end with spaces that the address omits.
  const typed = useSignal(words.join(" "));
  const search = useSignal(q);
  search.value = q;
  const remote = useRemote(q);
  const rows = useComputed(() => {
    const found = filterWorkspaces(workspacesByUse.value, search.value, { username: me.value?.username ?? "" });
    const ids = remote.value;
    return ids === undefined ? found : found.filter(({ id }) => ids.has(id));
  });
  const selected = useSignal<ReadonlySet<string>>(new Set());
  const last = useSignal<string | undefined>(undefined);

  const select = (row: WorkspaceSummary, on: boolean, range: boolean): void => {
    const all = rows.value.map(({ id }) => id);
    const [from, to] = [range && last.value ? all.indexOf(last.value) : -1, all.indexOf(row.id)];
    const ids = from < 0 ? [row.id] : all.slice(Math.min(from, to), Math.max(from, to) + 1);
    const next = new Set(selected.value);
    for (const id of ids) on ? next.add(id) : next.delete(id);
    selected.value = next;
    last.value = row.id;
  };
  const showsOwner = !terms.some(({ key, value }) => key === "owner" && value === "me");
  const cells = useMemo(() => new WeakMap<WorkspaceSummary, RenderedRow>(), []);
  /** Reuses the node of an unchanged row, which the renderer then does not compare again during scrolling. */
  const renderRow = (row: WorkspaceSummary | undefined, index: number, isPassing: boolean): VNode | undefined => {
    if (!row) return undefined;
    const isSelected = selected.value.has(row.id);
    const key = `${index} ${isSelected} ${showsOwner}`;
    const known = cells.get(row);
    // A complete row is not replaced by a reduced one.
    if (known?.key === key && (isPassing || !known.isPassing)) return known.node;
    const choice = { selected: isSelected, onSelect: select };
    const node = <Row row={row} index={index} {...choice} showsOwner={showsOwner} isPassing={isPassing} />;
    cells.set(row, { key, isPassing, node });
    return node;
  };
  const list = rows.value;
  const picked = selected.value;
  const chosen = picked.size === 0 ? [] : list.filter(({ id }) => picked.has(id));
  const isAll = chosen.length > 0 && chosen.length === list.length;

  return (
    <Frame
      title="Workspaces"
      note={<span class="dim small num">{list.length}</span>}
      actions={
        <>
          <ButtonLink icon="trash" href="/trash">
            Trash
          </ButtonLink>
          <ButtonLink look="primary" icon="plus" href="/new" keys="N">
            New workspace
          </ButtonLink>
        </>
      }
    >
      <ForkDialog />
      <SavedFilters q={q} go={go} />
      <div class="filter line wrap">
        <Search
          label="Filter workspaces"
          placeholder="name, status:running, outdated:true…"
          terms={terms}
          words={typed.value}
          keys={KEYS}
          valuesOf={(key) => listValues(key, workspacesByUse.value)}
          onChange={(nextTerms, nextWords) => {
            typed.value = nextWords;
            // A key without a value is not evaluated yet.
            const whole = nextWords
              .split(/\s+/)
              .filter((word) => word !== "" && !/:$/.test(word) && !word.includes(":"));
            filter(format({ terms: nextTerms, words: whole }));
          }}
        />
      </div>
      {list.length === 0 ? (
        <EmptyList q={q} />
      ) : (
        <div class="rows" role="table" aria-label="Workspaces" aria-rowcount={list.length + 1}>
          <div class="hd" role="row" aria-rowindex={1}>
            <span role="columnheader">
              <span class="tap">
                <input
                  type="checkbox"
                  aria-label="Select all"
                  checked={isAll}
                  onClick={() => {
                    selected.value = isAll ? new Set() : new Set(list.map(({ id }) => id));
                  }}
                />
              </span>
            </span>
            <span role="columnheader">Name</span>
            <span role="columnheader" class="tpl">
              Template
            </span>
            <span role="columnheader">State</span>
            <span role="columnheader" class="opt">
              Schedule
            </span>
            <span role="columnheader" class="opt">
              Used
            </span>
            <span role="columnheader">
              <span class="vh">Actions</span>
            </span>
          </div>
          <VirtualList
            // The heights of one kind of row do not apply to the other.
            key={isNarrow.value ? "measured" : "fixed"}
            role="rowgroup"
            count={list.length}
            size={ROW_PX}
            fixed={!isNarrow.value}
            narrow={isTyping.value}
            recycled
            keyOf={(index) => list[index]?.id ?? index}
            row={(index, isScrolled) => renderRow(list[index], index, isScrolled || isTyping.value)}
          />
        </div>
      )}
      {chosen.length > 0 && (
        <Bulk
          rows={chosen}
          clear={() => {
            selected.value = new Set();
          }}
        />
      )}
    </Frame>
  );
}

/**
 * The search text of the list. Input applies immediately (`filter`) and is written to the address after a pause, since that redraws the
 * whole app; `go` writes it immediately. `address` is the text in the address. `isTyping`: rows change with every keystroke, so their
 * interactive elements can be omitted.
 */
const useSearchText = (address: string, write: (next: string) => void) => {
  const typed = useSignal<string | undefined>(undefined);
  const isTyping = useSignal(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const stop = (): void => {
    clearTimeout(timer.current);
    timer.current = undefined;
    isTyping.value = false;
  };
  useEffect(() => stop, []);
  useEffect(() => {
    if (timer.current === undefined) typed.value = undefined;
  }, [address]);
  return {
    q: typed.value ?? address,
    isTyping,
    go(next: string): void {
      stop();
      typed.value = undefined;
      write(next);
    },
    filter(next: string): void {
      stop();
      typed.value = next;
      isTyping.value = true;
      timer.current = setTimeout(() => {
        timer.current = undefined;
        isTyping.value = false;
        write(next);
      }, DEBOUNCE_MS);
    },
  };
};

/** Returns the IDs that the server finds for a query; undefined if the rows can answer it. */
const useRemote = (q: string) => {
  const found = useSignal<ReadonlySet<string> | undefined>(undefined);
  useEffect(() => {
    found.value = undefined;
    if (!isRemote(q)) return;
    let isOver = false;
    // The server is asked after a pause in typing.
    const timer = setTimeout(() => {
      call("GET /workspaces", { query: { q, limit: MAX_REMOTE_RESULTS } }).then(
        ({ workspaces }) => {
          if (!isOver) found.value = new Set(workspaces.map(({ id }) => id));
        },
        (error) => {
          if (!isOver) showError(error);
        },
      );
    }, DEBOUNCE_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [q]);
  return found;
};

const EmptyList = ({ q }: { q: string }) => {
  if (!workspacesLoaded.value) {
    return (
      <div class="page">
        <Skeleton lines={6} />
      </div>
    );
  }
  if (q === "" || q === "owner:me") {
    return (
      <Empty icon="box" title="No workspaces yet" text="A workspace is a computer for one task, made from a template.">
        <ButtonLink look="primary" href="/new" keys="N">
          New workspace
        </ButtonLink>
      </Empty>
    );
  }
  return (
    <Empty icon="search" title="No matching workspaces" text="No workspace matches all of these filters.">
      <ButtonLink href="/workspaces?q=">Show all</ButtonLink>
    </Empty>
  );
};
