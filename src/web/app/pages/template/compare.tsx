// The diff between the files of two versions. Both are in the address.
import { useLocation } from "preact-iso/router";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import { useResource } from "../../data/resource.ts";
import { makeDiff, readVersionFiles } from "../../data/version-files.ts";
import { ButtonLink } from "../../parts/button.tsx";
import { DiffFile } from "../../parts/diff/diff-file.tsx";
import { parseFiles } from "../../parts/diff/diff-lines.ts";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Select } from "../../parts/field.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";

/** Number of files that are expanded by default. */
const MAX_EXPANDED = 10;

type CompareProps = {
  /** Newest first. */
  readonly versions: readonly TemplateVersion[];
  readonly from: TemplateVersion;
  readonly to: TemplateVersion;
  /** The address of the list of versions. */
  readonly versionsPath: string;
};

const loadDiff = async (from: TemplateVersion, to: TemplateVersion) => {
  const [before, after] = await Promise.all([
    readVersionFiles(from.job.file_id),
    from.job.file_id === to.job.file_id ? undefined : readVersionFiles(to.job.file_id),
  ]);
  return after ? parseFiles(await makeDiff(before, after)) : [];
};

export const Compare = ({ versions, from, to, versionsPath }: CompareProps) => {
  const { route } = useLocation();
  const { state, reload } = useResource(`compare ${from.id} ${to.id}`, () => loadDiff(from, to));
  const { data, error } = state.value;
  const choices = versions.map(({ id, name, message }) => ({
    value: id,
    label: message ? `${name}: ${message.split("\n")[0]?.slice(0, 60)}` : name,
  }));
  const comparePair = (pair: { from: string; to: string }): void =>
    route(`${versionsPath}?${new URLSearchParams(pair)}`, true);
  return (
    <section class="stack" aria-labelledby="compare">
      <div class="head">
        <h2 id="compare">Differences</h2>
        <span class="push">
          <ButtonLink href={versionsPath}>All versions</ButtonLink>
        </span>
      </div>
      <div class="split even">
        <Select
          label="Before"
          value={from.id}
          choices={choices}
          onPick={(id) => comparePair({ from: id, to: to.id })}
        />
        <Select label="After" value={to.id} choices={choices} onPick={(id) => comparePair({ from: from.id, to: id })} />
      </div>
      {error && !data ? (
        <Failed title="Can't compare the files" error={error} reload={reload} />
      ) : !data ? (
        <Skeleton lines={6} />
      ) : data.length === 0 ? (
        <Empty icon="file" title="No differences" text="The versions may still differ in their variable values." />
      ) : (
        data.map((file, index) => <DiffFile key={file.path} file={file} isOpen={index < MAX_EXPANDED} />)
      )}
    </section>
  );
};
