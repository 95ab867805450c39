// Saved filters: built-in ones, and the user's own, stored in this browser.
import { computed, signal } from "@preact/signals";
import { me } from "../../data/session.ts";
import { workspacesByUse } from "../../data/workspaces.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field } from "../../parts/field.tsx";
import { setTo } from "../../parts/handlers.ts";
import { filterWorkspaces } from "./filter.ts";

type Filter = { readonly name: string; readonly q: string };

const BUILTIN_FILTERS: readonly Filter[] = [
  { name: "Mine", q: "owner:me" },
  { name: "Running", q: "owner:me status:running" },
  { name: "Outdated", q: "owner:me outdated:true" },
  { name: "Dormant", q: "owner:me dormant:true" },
  { name: "Everyone", q: "" },
];

const STORAGE_KEY = "workspace-filters";
const loadFilters = (): Filter[] => {
  try {
    const stored = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "[]");
    return Array.isArray(stored)
      ? stored.filter((one) => typeof one?.name === "string" && typeof one?.q === "string")
      : [];
  } catch {
    return [];
  }
};
const ownFilters = signal<readonly Filter[]>(loadFilters());
const storeFilters = (filters: readonly Filter[]): void => {
  ownFilters.value = filters;
  localStorage.setItem(STORAGE_KEY, JSON.stringify(filters));
};

const isNaming = signal(false);

/** The number of matches of each filter, recomputed only when the list or the filters change, not on every keystroke. */
const matchCounts = computed(() => {
  const viewer = { username: me.value?.username ?? "" };
  return new Map(
    [...BUILTIN_FILTERS, ...ownFilters.value].map(({ q }) => [
      q,
      filterWorkspaces(workspacesByUse.value, q, viewer).length,
    ]),
  );
});

export const SavedFilters = ({ q, applyQuery }: { q: string; applyQuery: (q: string) => void }) => {
  const filters = [...BUILTIN_FILTERS, ...ownFilters.value];
  const isSaved = filters.some((one) => one.q === q);
  const ownFilter = ownFilters.value.find((one) => one.q === q);
  return (
    <div class="tabs" role="navigation" aria-label="Saved filters">
      {filters.map((filter) => (
        <a
          key={`${filter.name} ${filter.q}`}
          href={`/workspaces?${new URLSearchParams({ q: filter.q })}`}
          aria-current={filter.q === q ? "true" : undefined}
        >
          {filter.name}
          <span class="count">{matchCounts.value.get(filter.q)}</span>
        </a>
      ))}
      <span class="push line">
        {!isSaved && (
          <Button small look="ghost" icon="save" onPress={setTo(isNaming, true)}>
            Save filter
          </Button>
        )}
        {ownFilter && (
          <IconButton
            small
            icon="trash"
            label={`Delete the filter ${ownFilter.name}`}
            onPress={() => {
              storeFilters(ownFilters.value.filter((one) => one !== ownFilter));
              applyQuery("owner:me");
            }}
          />
        )}
      </span>
      {isNaming.value && <NameDialog q={q} />}
    </div>
  );
};

const NameDialog = ({ q }: { q: string }) => {
  const close = (): void => {
    isNaming.value = false;
  };
  return (
    <Dialog
      title="Save filter"
      onClose={close}
      footer={
        <>
          <Button onPress={close}>Cancel</Button>
          <Button look="primary" type="submit" form="name-filter">
            Save filter
          </Button>
        </>
      }
    >
      <form
        id="name-filter"
        onSubmit={(event) => {
          event.preventDefault();
          const name = String(new FormData(event.currentTarget).get("name")).trim();
          if (name !== "") storeFilters([...ownFilters.value, { name, q }]);
          close();
        }}
      >
        <Field label="Name" name="name" required maxLength={40} hint={<code>{q}</code>} autocomplete="off" />
      </form>
    </Dialog>
  );
};
