import { messageOf } from './error.ts'

/** So long an equal warning is only counted. */
const QUIET_MS = 60_000
/** Warnings whose words differ each time are not remembered for ever. */
const MOST_KNOWN = 1_000

/**
 * Makes a reporter that says one of equal errors a minute, with the number of the others: a mistake that every request meets would
 * fill the log.
 */
export function quietly(emit: (message: string) => void, now: () => number = Date.now): (error: unknown) => void {
  const known = new Map<string, { at: number; more: number }>()
  return (error) => {
    const message = messageOf(error)
    const last = known.get(message)
    if (last !== undefined && now() - last.at < QUIET_MS) {
      last.more++
      return
    }
    if (last === undefined && known.size >= MOST_KNOWN) known.clear()
    known.set(message, { at: now(), more: 0 })
    const more = last?.more ?? 0
    emit(more === 0 ? message : `${message} (${more} more of these since the last one)`)
  }
}

/** Warns of what nobody else reports. */
export const warnQuietly: (error: unknown) => void = quietly(emitWarning)

function emitWarning(message: string): void {
  process.emitWarning(message, { type: 'LegateWarning' })
}
