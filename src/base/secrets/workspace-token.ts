// How the token with which programs of a workspace call the AI gateway begins.

export const WORKSPACE_TOKEN_PREFIX = "slipway-ai.";

/** Whether a text is such a token, valid or not. */
export const isWorkspaceToken = (token: string): boolean => token.startsWith(WORKSPACE_TOKEN_PREFIX);
