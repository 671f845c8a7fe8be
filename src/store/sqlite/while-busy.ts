import { RESULT, resultCode } from './driver.ts'

/**
 * Tries again while another process holds the file, at most so long. Nothing else runs meanwhile, so this is for what is
 * rare and short: turning a new file to its log, or mending the log of a process that was killed.
 */
export function whileBusy<T>(busyMs: number, attempt: () => T): T {
  let giveUpAt = 0
  for (;;) {
    try {
      return attempt()
    } catch (error) {
      if (!isBusy(error)) throw error
      if (giveUpAt === 0) giveUpAt = performance.now() + busyMs
      if (performance.now() >= giveUpAt) throw error
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5 + Math.random() * 20)
  }
}

export function isBusy(error: unknown): boolean {
  return (resultCode(error) & 0xff) === RESULT.busy
}
