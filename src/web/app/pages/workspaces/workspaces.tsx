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
import { formatQuery, parseQuery } from "../../parts/query.ts";
import { Search } from "../../parts/search.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { VirtualList } from "../../parts/virtual-list/virtual-list.tsx";
import { Frame } from "../../shell/frame.tsx";
import { showError } from "../../shell/toasts.tsx";
import { BulkActions } from "./bulk.tsx";
import { filterWorkspaces, KEYS, listValues, needsServer } from "./filter.ts";
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

type RenderedRow = { readonly key: string; readonly isScrolling: boolean; readonly node: VNode };
/** Maximum number of results for a search on the server. */
const MAX_REMOTE_RESULTS = 1_000;
/** Debounce delay for input. */
const DEBOUNCE_MS = 200;

export default function WorkspacesPage() {
  const { query, path, route } = useLocation();
  const { q, applyQuery, filterAsTyped, isTyping } = useSearchText(query.q ?? "owner:me", (next) =>
    route(`${path}?${new URLSearchParams({ q: next })}`, true),
  );
  const { terms, words } = parseQuery(q);
  // The input may end with spaces that the address omits.
  const typedWords = useSignal(words.join(" "));
  const queryText = useSignal(q);
  queryText.value = q;
  const serverIds = useServerIds(q);
  const rows = useComputed(() => {
    const matching = filterWorkspaces(workspacesByUse.value, queryText.value, { username: me.value?.username ?? "" });
    const ids = serverIds.value;
    return ids === undefined ? matching : matching.filter(({ id }) => ids.has(id));
  });
  const selected = useSignal<ReadonlySet<string>>(new Set());
  const lastSelectedId = useSignal<string | undefined>(undefined);

  const select = (row: WorkspaceSummary, isSelected: boolean, isRange: boolean): void => {
    const allIds = rows.value.map(({ id }) => id);
    const [start, end] = [
      isRange && lastSelectedId.value ? allIds.indexOf(lastSelectedId.value) : -1,
      allIds.indexOf(row.id),
    ];
    const ids = start < 0 ? [row.id] : allIds.slice(Math.min(start, end), Math.max(start, end) + 1);
    const next = new Set(selected.value);
    for (const id of ids) isSelected ? next.add(id) : next.delete(id);
    selected.value = next;
    lastSelectedId.value = row.id;
  };
  const showsOwner = !terms.some(({ key, value }) => key === "owner" && value === "me");
  const renderedRows = useMemo(() => new WeakMap<WorkspaceSummary, RenderedRow>(), []);
  /** Reuses the node of an unchanged row, which the renderer then does not compare again during scrolling. */
  const renderRow = (row: WorkspaceSummary | undefined, index: number, isScrolling: boolean): VNode | undefined => {
    if (!row) return undefined;
    const isSelected = selected.value.has(row.id);
    const key = `${index} ${isSelected} ${showsOwner}`;
    const rendered = renderedRows.get(row);
    // A complete row is not replaced by a reduced one.
    if (rendered?.key === key && (isScrolling || !rendered.isScrolling)) return rendered.node;
    const selection = { isSelected, onSelect: select };
    const node = <Row row={row} index={index} {...selection} showsOwner={showsOwner} isScrolling={isScrolling} />;
    renderedRows.set(row, { key, isScrolling, node });
    return node;
  };
  const matchingRows = rows.value;
  const selectedIds = selected.value;
  const selectedRows = selectedIds.size === 0 ? [] : matchingRows.filter(({ id }) => selectedIds.has(id));
  const areAllSelected = selectedRows.length > 0 && selectedRows.length === matchingRows.length;

  return (
    <Frame
      title="Workspaces"
      note={<span class="dim small num">{matchingRows.length}</span>}
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
      <SavedFilters q={q} applyQuery={applyQuery} />
      <div class="filter line wrap">
        <Search
          label="Filter workspaces"
          placeholder="name, status:running, outdated:true…"
          terms={terms}
          words={typedWords.value}
          keys={KEYS}
          listValues={(key) => listValues(key, workspacesByUse.value)}
          onChange={(nextTerms, nextWords) => {
            typedWords.value = nextWords;
            // A key without a value is not evaluated yet.
            const completeWords = nextWords
              .split(/\s+/)
              .filter((word) => word !== "" && !/:$/.test(word) && !word.includes(":"));
            filterAsTyped(formatQuery({ terms: nextTerms, words: completeWords }));
          }}
        />
      </div>
      {matchingRows.length === 0 ? (
        <EmptyList q={q} />
      ) : (
        <div class="rows" role="table" aria-label="Workspaces" aria-rowcount={matchingRows.length + 1}>
          <div class="hd" role="row" aria-rowindex={1}>
            <span role="columnheader">
              <span class="tap">
                <input
                  type="checkbox"
                  aria-label="Select all"
                  checked={areAllSelected}
                  onClick={() => {
                    selected.value = areAllSelected ? new Set() : new Set(matchingRows.map(({ id }) => id));
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
            count={matchingRows.length}
            rowHeightPx={ROW_PX}
            hasFixedHeight={!isNarrow.value}
            rendersVisibleOnly={isTyping.value}
            recyclesRows
            getKey={(index) => matchingRows[index]?.id ?? index}
            renderRow={(index, isScrolled) => renderRow(matchingRows[index], index, isScrolled || isTyping.value)}
          />
        </div>
      )}
      {selectedRows.length > 0 && (
        <BulkActions
          rows={selectedRows}
          clearSelection={() => {
            selected.value = new Set();
          }}
        />
      )}
    </Frame>
  );
}

/**
 * The search text of the list. Input applies immediately (`filterAsTyped`) and is written to the address after a pause, since that redraws the
 * whole app; `applyQuery` writes it immediately. `address` is the text in the address. `isTyping`: rows change with every keystroke, so their
 * interactive elements can be omitted.
 */
const useSearchText = (address: string, write: (next: string) => void) => {
  const typedQuery = useSignal<string | undefined>(undefined);
  const isTyping = useSignal(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const cancelPending = (): void => {
    clearTimeout(timer.current);
    timer.current = undefined;
    isTyping.value = false;
  };
  useEffect(() => cancelPending, []);
  useEffect(() => {
    if (timer.current === undefined) typedQuery.value = undefined;
  }, [address]);
  return {
    q: typedQuery.value ?? address,
    isTyping,
    applyQuery(next: string): void {
      cancelPending();
      typedQuery.value = undefined;
      write(next);
    },
    filterAsTyped(next: string): void {
      cancelPending();
      typedQuery.value = next;
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
const useServerIds = (q: string) => {
  const ids = useSignal<ReadonlySet<string> | undefined>(undefined);
  useEffect(() => {
    ids.value = undefined;
    if (!needsServer(q)) return;
    let isOutdated = false;
    // The server is asked after a pause in typing.
    const timer = setTimeout(() => {
      call("GET /workspaces", { query: { q, limit: MAX_REMOTE_RESULTS } }).then(
        ({ workspaces }) => {
          if (!isOutdated) ids.value = new Set(workspaces.map(({ id }) => id));
        },
        (error) => {
          if (!isOutdated) showError(error);
        },
      );
    }, DEBOUNCE_MS);
    return () => {
      isOutdated = true;
      clearTimeout(timer);
    };
  }, [q]);
  return ids;
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
