// The prefix of the token that programs in a workspace use for the AI gateway.

export const WORKSPACE_TOKEN_PREFIX = "slipway-ai.";

/** Returns whether a text has the form of such a token, valid or not. */
export const isWorkspaceToken = (token: string): boolean => token.startsWith(WORKSPACE_TOKEN_PREFIX);
