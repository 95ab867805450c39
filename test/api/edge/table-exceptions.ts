// Routes that respond to invalid input differently from table.test.ts, with the reason.

const EXCEPTIONS: { operation: string; when: string; status: number; why: string }[] = [
  {
    operation: "PUT /api/v2/ai/agents/{coding_agent}",
    when: "unknown coding_agent",
    status: 200,
    why: "A new name adds an agent.",
  },
  {
    operation: "GET /api/v2/workspaceagents/{workspaceagent}/startup-logs",
    when: "unknown workspaceagent",
    status: 410,
    why: "The route was removed, for every agent ID.",
  },
  ...["wrong buildnumber", "unknown buildnumber"].map((when) => ({
    operation: "GET /api/v2/users/{user}/workspace/{workspacename}/builds/{buildnumber}",
    when,
    status: 400,
    why: "A build is identified by its number; anything else is invalid.",
  })),
];

/** Returns the status that replaces the table's in this case, if any. */
export const findExceptionStatus = (operation: string, when: string): number | undefined =>
  EXCEPTIONS.find((exception) => exception.operation === operation && exception.when === when)?.status;
