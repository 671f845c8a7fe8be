/** How long a running node has to commit what it has before it is stopped without being asked again. */
export const CANCEL_GRACE_MS = 5_000
