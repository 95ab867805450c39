// Parses the hosts of a PostgreSQL URL. Pure.

/** Returns one URL for each host of `postgres://user:password@one:5432,two:5433/database?x=y`, in order. Throws RangeError. */
export const splitHosts = (url: string): string[] => {
  const [, scheme = "", credentials = "", hosts = "", rest = ""] =
    /^(postgres(?:ql)?:\/\/)([^@/]*@)?([^/?]*)(.*)$/s.exec(url) ?? [];
  if (scheme === "" || hosts === "") {
    throw new RangeError("an address of PostgreSQL is postgres://user:password@host:port/database");
  }
  return hosts.split(",").map((host) => `${scheme}${credentials}${host}${rest}`);
};

/** Returns the URL without its password, for logs. */
export const redactPassword = (url: string): string => url.replace(/^(postgres(?:ql)?:\/\/[^:@/]*):[^@/]*@/, "$1:***@");
