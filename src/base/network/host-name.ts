// Parses the name in a Host header. Pure.

/** Returns the name in lower case without port; undefined unless it is `name`, `name:port` or `[v6]:port`. */
export const parseHostName = (host: string): string | undefined => {
  const match = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i.exec(host);
  return match?.[1]?.toLowerCase();
};
