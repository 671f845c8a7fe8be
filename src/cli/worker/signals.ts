import { EXIT } from '../command/command.ts'
import { note } from '../terminal/output.ts'

const CODES = { SIGINT: EXIT.interrupted, SIGTERM: EXIT.terminated } as const
const LONG_MS = 2 ** 30
const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/**
 * Resolves at the first SIGINT or SIGTERM, and says these words. The next signal ends the process at once, after `clear`.
 * Until the first one it keeps the process alive. Call it early: without it a signal ends the process.
 */
export function untilSignalled(words: string, clear: () => void = () => undefined): Promise<void> {
  return new Promise((resolve) => {
    // Signals alone do not keep a process alive, and neither does an engine.
    const alive = setInterval(() => undefined, LONG_MS)
    const atFirst = (): void => {
      note(`${words} Another signal ends at once.`)
      for (const signal of SIGNALS) {
        process.off(signal, atFirst)
        process.once(signal, () => {
          clear()
          process.exit(CODES[signal])
        })
      }
      clearInterval(alive)
      resolve()
    }
    for (const signal of SIGNALS) process.once(signal, atFirst)
  })
}
