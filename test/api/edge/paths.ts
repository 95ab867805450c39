// Path prefixes of most table rows.
export const O = "/api/v2/organizations/{organization}";
export const U = "/api/v2/users/{user}";
export const T = "/api/v2/templates/{template}";
export const V = "/api/v2/templateversions/{templateversion}";
export const W = "/api/v2/workspaces/{workspace}";
export const B = "/api/v2/workspacebuilds/{workspacebuild}";
export const A = "/api/v2/workspaceagents/{workspaceagent}";
export const C = "/api/v2/chats/{chat}";
export const K = "/api/v2/tasks/{user}/{task}";
