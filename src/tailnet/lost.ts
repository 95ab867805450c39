/** How long peers keep a partner whose connection to the coordinator was lost (facts/wire 2.2): the server may only have been started again. */
export const LOST_MS = 15 * 60_000;
