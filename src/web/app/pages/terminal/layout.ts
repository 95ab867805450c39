// The layout of an agent's terminals: tabs with columns of stacked terminals. Pure, except that the browser stores the layout, so that the
// same terminals are shown again after a reload or on another day.

/** Terminals by ID: columns from left to right, each from top to bottom. */
export type Tab = { readonly columns: readonly (readonly string[])[] };
export type Layout = { readonly tabs: readonly Tab[]; readonly tab: number; readonly pane: string };

/** The daemon allows 100 in total. */
export const MAX_PANES = 24;
const PREFIX = "slipway.terminals.";
const ID_PATTERN = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export const listPanes = ({ columns }: Tab): readonly string[] => columns.flat();
export const listAllPanes = ({ tabs }: Layout): readonly string[] => tabs.flatMap(listPanes);
const getFirstPane = (tab: Tab | undefined): string => tab?.columns[0]?.[0] ?? "";

export const createLayout = (id: string): Layout => ({ tabs: [{ columns: [[id]] }], tab: 0, pane: id });

/** Adds a terminal in a new tab at the end. */
export const addTab = ({ tabs }: Layout, id: string): Layout => ({
  tabs: [...tabs, { columns: [[id]] }],
  tab: tabs.length,
  pane: id,
});

/** Adds a terminal next to the current one. */
export const splitPane = (layout: Layout, direction: "right" | "below", id: string): Layout => {
  const columns = (layout.tabs[layout.tab]?.columns ?? []).flatMap((column) => {
    const index = column.indexOf(layout.pane);
    if (index < 0) return [column];
    return direction === "right" ? [column, [id]] : [column.toSpliced(index + 1, 0, id)];
  });
  return { ...layout, tabs: layout.tabs.with(layout.tab, { columns }), pane: id };
};

/** Removes a terminal; returns undefined if it was the last. */
export const closePane = (layout: Layout, id: string): Layout | undefined => {
  const tabs = layout.tabs
    .map(({ columns }) => ({
      columns: columns.map((column) => column.filter((one) => one !== id)).filter(({ length }) => length > 0),
    }))
    .filter(({ columns }) => columns.length > 0);
  const removedIndex = tabs.length < layout.tabs.length && layout.tabs.findIndex((tab) => listPanes(tab).includes(id));
  const nextTab = Math.min(
    removedIndex !== false && removedIndex < layout.tab ? layout.tab - 1 : layout.tab,
    tabs.length - 1,
  );
  const currentTab = tabs[nextTab];
  if (!currentTab) return undefined;
  return {
    tabs,
    tab: nextTab,
    pane: listPanes(currentTab).includes(layout.pane) ? layout.pane : getFirstPane(currentTab),
  };
};

/** Replaces a terminal in its position. */
export const replacePane = (layout: Layout, oldId: string, newId: string): Layout => {
  const swap = (id: string): string => (id === oldId ? newId : id);
  return {
    ...layout,
    tabs: layout.tabs.map(({ columns }) => ({ columns: columns.map((column) => column.map(swap)) })),
    pane: swap(layout.pane),
  };
};

export const selectTab = (layout: Layout, tab: number): Layout =>
  layout.tabs[tab] ? { ...layout, tab, pane: getFirstPane(layout.tabs[tab]) } : layout;

export const selectPane = (layout: Layout, pane: string): Layout => ({ ...layout, pane });

/** Parses a stored layout; undefined if it is invalid. */
export const parseLayout = (text: string | null): Layout | undefined => {
  try {
    const { tabs, tab } = JSON.parse(text ?? "") as Layout;
    const validTabs = tabs.map(({ columns }) => ({
      columns: columns.map((column) => column.filter((id) => ID_PATTERN.test(id))),
    }));
    const isComplete =
      validTabs.length > 0 && validTabs.every(({ columns }) => columns.length > 0 && columns.every((c) => c.length));
    if (!isComplete) return undefined;
    const validTab = validTabs[tab] ? tab : 0;
    return { tabs: validTabs, tab: validTab, pane: getFirstPane(validTabs[validTab]) };
  } catch {
    return undefined;
  }
};

export const loadLayout = (agent: string): Layout | undefined => parseLayout(localStorage.getItem(PREFIX + agent));

export const storeLayout = (agent: string, layout: Layout | undefined): void => {
  try {
    if (layout) localStorage.setItem(PREFIX + agent, JSON.stringify(layout));
    else localStorage.removeItem(PREFIX + agent);
  } catch {
    // If storage is full or forbidden, only the restored layout is lost, not the terminal.
  }
};
