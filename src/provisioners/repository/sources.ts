// The interface through which a provisioner reads the files of a repository and features in registries. The server implements it; an
// external worker has no such interface.
import type { RepositoryPlan } from "#schema/templates/repository.ts";

/** A copy of the files of a plan's commit. Disposing removes the copy. */
export type RepositorySource = Disposable & {
  /** Returns a tar of a folder, by its Git ID. */
  archive(tree: string): ReadableStream<Uint8Array>;
  /** Returns the text of a file; undefined if it does not exist. */
  read(path: string): Promise<string | undefined>;
  /** Returns Git's ID of a file or folder; undefined if it does not exist. */
  getObjectId(path: string): Promise<string | undefined>;
};

export type RepositorySources = {
  /** Opens the repository with this user's linked account. Rejects with an Error with a message for the user. */
  open(plan: RepositoryPlan, owner_id: string, signal: AbortSignal): Promise<RepositorySource>;
  /** Returns the tar archive of a feature, with this user's access. Rejects with an Error with a message for the user. */
  loadFeature(id: string, owner_id: string, signal: AbortSignal): Promise<Uint8Array>;
  /**
   * Returns the token with which an engine pulls an image; undefined if the engine needs no token. Rejects with an Error with a message for
   * the user if the image's registry is at an address that this user may not access, or redirects to such an address.
   */
  fetchPullToken(image: string, owner_id: string, signal: AbortSignal): Promise<string | undefined>;
};
