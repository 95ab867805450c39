// Repositories in memory, as a mapping of paths to texts, for tests of repository configurations.
import { sha256 } from "#base/ids.ts";
import type { RepositoryPlan } from "#schema/templates/repository.ts";
import { planRepository, type RepositoryFiles } from "#src/provisioners/repository/plan.ts";

export const COMMIT = "c".repeat(40);

export const toMemoryFiles = (texts: Readonly<Record<string, string>>): RepositoryFiles => ({
  commit: COMMIT,
  files: Object.keys(texts),
  read: async (path) => texts[path],
  getObjectId: async (path) => {
    const isFolder = path === "" || Object.keys(texts).some((file) => file.startsWith(`${path}/`));
    return texts[path] !== undefined || isFolder ? sha256(`${path}:${texts[path] ?? ""}`).slice(0, 40) : undefined;
  },
});

/** Returns the plan for these files. */
export const makePlan = (
  texts: Readonly<Record<string, string>>,
  { path, configuration }: { path?: string; configuration?: string } = {},
): Promise<RepositoryPlan> =>
  planRepository(
    toMemoryFiles(texts),
    {
      url: "https://git.example.com/acme/app",
      name: "app",
      ref: "HEAD",
      ref_kind: "default",
      ...(path ? { path } : {}),
    },
    configuration,
  );
