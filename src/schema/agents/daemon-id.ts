// The header in which Slipway's own daemon identifies its process when it connects: 32 hexadecimal digits, generated at its start and not
// stored.
export const DAEMON_ID_HEADER = "Slipway-Daemon-Id";

/** Returns the daemon's ID in these headers; undefined for other agents. */
export const readDaemonId = (headers: Headers): string | undefined => {
  const id = headers.get(DAEMON_ID_HEADER);
  return id !== null && /^[0-9a-f]{32}$/.test(id) ? id : undefined;
};
