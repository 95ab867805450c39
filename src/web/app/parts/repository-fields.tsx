// Form fields for a repository and its branch, with recently opened repositories as shortcuts.
import type { Signal } from "@preact/signals";
import { parseRepositoryAddress } from "#base/links/repository-address.ts";
import type { RepositoryAsked } from "#schema/templates/repository.ts";
import { call } from "../data/api.ts";
import { useResource } from "../data/resource.ts";
import { Button } from "./button.tsx";
import { Field } from "./field.tsx";

const MAX_RECENT = 4;

export const NO_REPOSITORY: RepositoryAsked = { url: "" };

/** Returns the value to send; undefined if no link is given. */
export const toRepository = ({ url, branch, ...rest }: RepositoryAsked): RepositoryAsked | undefined => {
  const link = url.trim();
  const name = branch?.trim();
  return link === "" ? undefined : { ...rest, url: link, ...(name ? { branch: name } : {}) };
};

/** Returns the user's repositories, most recently used first. */
export const useRecentRepositories = () =>
  useResource("recent repositories", () => call("GET /repositories")).state.value.data ?? [];

/** Returns the branch, commit, pull request or path, as a suffix of the repository's name; empty for the default branch. */
const formatRef = ({ branch, commit, pull_request, path }: RepositoryAsked): string =>
  [branch, commit?.slice(0, 10), pull_request && `#${pull_request}`, path].filter(Boolean).join(" ");

/** Formats the last two parts of the path, and the branch or other ref. */
export const formatRepository = (repository: RepositoryAsked): string => {
  const address = parseRepositoryAddress(repository.url);
  const parts = address ? new URL(address.url).pathname.split("/").filter(Boolean).slice(-2) : [repository.url.trim()];
  return [parts.join("/").replace(/\.git$/, ""), formatRef(repository)].filter(Boolean).join(" · ");
};

type RepositoryFieldsProps = {
  readonly value: Signal<RepositoryAsked>;
  readonly hint?: string;
  /** The server's errors, by field. */
  readonly problems?: Readonly<Record<string, string>>;
};

export const RepositoryFields = ({ value, hint, problems = {} }: RepositoryFieldsProps) => {
  const { url, branch = "", commit, pull_request } = value.value;
  const recent = useRecentRepositories().slice(0, MAX_RECENT);
  const error = problems["repository.url"] ?? problems.repository;
  return (
    <div class="stack tight">
      <div class="line wrap repository">
        <div class="grow">
          <Field
            label="Repository"
            placeholder="https://github.com/acme/app"
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            inputMode="url"
            value={url}
            hint={hint}
            error={error}
            // A new link is another repository, so the branch and other choices are cleared.
            onInput={({ currentTarget }) => {
              value.value = { url: currentTarget.value, ...(branch ? { branch } : {}) };
            }}
          />
        </div>
        <Field
          label="Branch"
          placeholder={commit?.slice(0, 10) ?? (pull_request ? `Pull request #${pull_request}` : "Default branch")}
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          value={branch}
          error={problems["repository.branch"]}
          onInput={({ currentTarget }) => {
            value.value = { url, ...(currentTarget.value ? { branch: currentTarget.value } : {}) };
          }}
        />
      </div>
      {recent.length > 0 && (
        <div class="line wrap" role="group" aria-label="Recent repositories">
          <span class="small mut">Recent</span>
          {recent.map(({ repository }) => (
            <Button
              key={JSON.stringify(repository)}
              small
              icon="branch"
              pressed={JSON.stringify(repository) === JSON.stringify(value.value)}
              onPress={() => {
                value.value = repository;
              }}
            >
              {formatRepository(repository)}
            </Button>
          ))}
        </div>
      )}
    </div>
  );
};
