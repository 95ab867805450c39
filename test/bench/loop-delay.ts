// How late the server's event loop is, as the server itself has measured it and says among its metrics.

/** Milliseconds since it was asked last, as the server has measured them. */
export const loopDelay = async (metrics: string): Promise<Record<"p50" | "p99" | "max", number>> => {
  const text = await (await fetch(metrics)).text();
  const of = (quantile: string): number =>
    1000 *
    Number(new RegExp(`^slipway_event_loop_delay_seconds\\{quantile="${quantile}"\\} (\\S+)`, "m").exec(text)?.[1]);
  return { p50: of("0.5"), p99: of("0.99"), max: of("1") };
};
