// The header of a log: its filter, which is stored in the address, the number of entries, and the retention period. Used by the audit log
// and the connection log.
import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useLocation } from "preact-iso/router";
import type { useResource } from "../../data/resource.ts";
import { isSiteOwner } from "../../data/session.ts";
import { sets } from "../../parts/handlers.ts";
import { format, parse } from "../../parts/query.ts";
import { Search } from "../../parts/search.tsx";

type RetentionPeriod = { readonly days: number };

type LogHeadProps<K extends RetentionPeriod> = {
  /** Label of the filter. */
  readonly label: string;
  readonly placeholder: string;
  readonly keys: readonly string[];
  readonly valuesOf: (key: string) => readonly string[];
  /** The page's address, and the query. */
  readonly href: string;
  readonly q: string;
  /** The noun for the count, singular and plural: `entry`, `entries`. */
  readonly nouns: readonly [string, string];
  readonly count: { readonly count: number; readonly count_cap: number } | undefined;
  readonly retention: ReturnType<typeof useResource<K>>;
  /** The form that changes the retention period. */
  readonly Form: ComponentType<{ kept: K; onClose: () => void }>;
};

export const LogHead = <K extends RetentionPeriod>(props: LogHeadProps<K>) => {
  const { label, placeholder, keys, valuesOf, href, q, nouns, count, retention, Form } = props;
  const { route } = useLocation();
  const { terms, words } = parse(q);
  const typed = useSignal(words.join(" "));
  const changing = useSignal(false);
  const retentionSetting = retention.state.value.data;
  const keptFor =
    retentionSetting && (retentionSetting.days === 0 ? "kept forever" : `kept ${retentionSetting.days} days`);
  return (
    <div class="filter line wrap">
      <Search
        label={label}
        placeholder={placeholder}
        terms={terms}
        words={typed.value}
        keys={keys}
        valuesOf={valuesOf}
        onChange={(nextTerms, nextWords) => {
          typed.value = nextWords;
          // A word without a key is an entry type, and a partial type would be refused.
          if (nextTerms.length !== terms.length || nextWords === "")
            route(`${href}?${new URLSearchParams({ q: format({ terms: nextTerms, words: [] }) })}`, true);
        }}
      />
      {count && (
        <span class="dim small num desk">
          {count.count > count.count_cap ? `more than ${count.count_cap}` : count.count}{" "}
          {nouns[count.count === 1 ? 0 : 1]}
          {keptFor && ", "}
          {isSiteOwner.value && keptFor ? (
            <button type="button" class="link" onClick={sets(changing, true)}>
              {keptFor}
            </button>
          ) : (
            keptFor
          )}
        </span>
      )}
      {changing.value && retentionSetting && (
        <Form
          kept={retentionSetting}
          onClose={() => {
            changing.value = false;
            void retention.reload();
          }}
        />
      )}
    </div>
  );
};
