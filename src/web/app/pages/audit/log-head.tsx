// The header of a log: its filter, which is stored in the address, the number of entries, and the retention period. Used by the audit log
// and the connection log.
import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useLocation } from "preact-iso/router";
import type { useResource } from "../../data/resource.ts";
import { isSiteOwner } from "../../data/session.ts";
import { setTo } from "../../parts/handlers.ts";
import { formatQuery, parseQuery } from "../../parts/query.ts";
import { Search } from "../../parts/search.tsx";

type RetentionPeriod = { readonly days: number };

type LogHeadProps<K extends RetentionPeriod> = {
  /** Label of the filter. */
  readonly label: string;
  readonly placeholder: string;
  readonly keys: readonly string[];
  readonly listValues: (key: string) => readonly string[];
  /** The page's address, and the query. */
  readonly href: string;
  readonly q: string;
  /** The noun for the count, singular and plural: `entry`, `entries`. */
  readonly nouns: readonly [string, string];
  readonly count: { readonly count: number; readonly count_cap: number } | undefined;
  readonly retention: ReturnType<typeof useResource<K>>;
  /** The form that changes the retention period. */
  readonly Form: ComponentType<{ retention: K; onClose: () => void }>;
};

export const LogHead = <K extends RetentionPeriod>(props: LogHeadProps<K>) => {
  const { label, placeholder, keys, listValues, href, q, nouns, count, retention, Form } = props;
  const { route } = useLocation();
  const { terms, words } = parseQuery(q);
  const typedText = useSignal(words.join(" "));
  const isChanging = useSignal(false);
  const retentionSetting = retention.state.value.data;
  const retentionText =
    retentionSetting && (retentionSetting.days === 0 ? "kept forever" : `kept ${retentionSetting.days} days`);
  return (
    <div class="filter line wrap">
      <Search
        label={label}
        placeholder={placeholder}
        terms={terms}
        words={typedText.value}
        keys={keys}
        listValues={listValues}
        onChange={(nextTerms, nextWords) => {
          typedText.value = nextWords;
          // A word without a key is an entry type, and a partial type would be refused.
          if (nextTerms.length !== terms.length || nextWords === "")
            route(`${href}?${new URLSearchParams({ q: formatQuery({ terms: nextTerms, words: [] }) })}`, true);
        }}
      />
      {count && (
        <span class="dim small num desk">
          {count.count > count.count_cap ? `more than ${count.count_cap}` : count.count}{" "}
          {nouns[count.count === 1 ? 0 : 1]}
          {retentionText && ", "}
          {isSiteOwner.value && retentionText ? (
            <button type="button" class="link" onClick={setTo(isChanging, true)}>
              {retentionText}
            </button>
          ) : (
            retentionText
          )}
        </span>
      )}
      {isChanging.value && retentionSetting && (
        <Form
          retention={retentionSetting}
          onClose={() => {
            isChanging.value = false;
            void retention.reload();
          }}
        />
      )}
    </div>
  );
};
