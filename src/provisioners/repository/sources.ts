// Where the files of an image come from: the repository on its host, and features in registries. The server gives them to the provisioner;
// a worker of its own has none.
import type { RepositoryPlan } from "#schema/templates/repository.ts";

/** The files of the commit of a plan. Disposing removes the copy. */
export type RepositorySource = Disposable & {
  /** A tar of a folder, by Git's id of it. */
  archive(tree: string): ReadableStream<Uint8Array>;
  /** The text of a file; undefined when it is not there. */
  read(path: string): Promise<string | undefined>;
  /** Git's id of a file or folder; undefined when it is not there. */
  idOf(path: string): Promise<string | undefined>;
};

export type RepositorySources = {
  /** Opens the repository with the linked account of this person. Rejects with an Error in words for people. */
  open(plan: RepositoryPlan, owner_id: string, signal: AbortSignal): Promise<RepositorySource>;
  /** The tar of a feature, by its id, for this person. Rejects with an Error in words for people. */
  feature(id: string, owner_id: string, signal: AbortSignal): Promise<Uint8Array>;
};
