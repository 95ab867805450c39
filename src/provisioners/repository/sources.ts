// The interface to the source files of an image: the repository on its host, and features in registries. The server passes it to the
// provisioner; an external worker does not have it.
import type { RepositoryPlan } from "#schema/templates/repository.ts";

/** The files of a plan's commit. Disposing removes the copy. */
export type RepositorySource = Disposable & {
  /** Returns a tar of a folder, by its Git ID. */
  archive(tree: string): ReadableStream<Uint8Array>;
  /** Returns the text of a file; undefined if it does not exist. */
  read(path: string): Promise<string | undefined>;
  /** Returns Git's ID of a file or folder; undefined if it does not exist. */
  getObjectId(path: string): Promise<string | undefined>;
};

export type RepositorySources = {
  /** Opens the repository with this user's linked account. Rejects with an Error that is readable for people. */
  open(plan: RepositoryPlan, owner_id: string, signal: AbortSignal): Promise<RepositorySource>;
  /** Returns the tar of a feature by its ID, with this user's access. Rejects with an Error that is readable for people. */
  loadFeature(id: string, owner_id: string, signal: AbortSignal): Promise<Uint8Array>;
  /**
   * Returns the token with which an engine pulls an image; undefined if the engine can sign in without one. Rejects with an Error that is
   * readable for people if the image's registry is at an address that this user may not reach, or redirects to such an address.
   */
  fetchPullToken(image: string, owner_id: string, signal: AbortSignal): Promise<string | undefined>;
};
