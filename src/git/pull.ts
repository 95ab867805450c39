// A pull request of a git host, and the interface for querying a host.

export type Pull = {
  readonly pr_number: number;
  readonly pr_state: "open" | "closed" | "merged";
  readonly pr_draft: boolean;
  readonly pr_title: string;
  readonly url: string;
  readonly author_login: string;
  readonly author_avatar_url: string;
  readonly base_branch: string;
  readonly head_branch: string;
  readonly additions: number;
  readonly deletions: number;
  readonly changed_files: number;
  readonly commits: number;
  readonly reviewer_count: number;
  readonly approved: boolean;
  readonly changes_requested: boolean;
};

/** One project at a host. All methods throw PullError. */
export interface Pulls {
  /** Returns the newest pull request from this branch; undefined if the branch has no pull request. */
  find(branch: string): Promise<number | undefined>;
  read(number: number): Promise<Pull>;
  /** Returns the unified diff of a pull request. */
  diff(number: number): Promise<string>;
  /** Returns the unified diff of a branch against the default branch. */
  branchDiff(branch: string): Promise<string>;
}
