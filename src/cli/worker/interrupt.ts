import { EXIT } from '../command.ts'

export interface Interrupts {
  /** The first Ctrl-C. */
  readonly ask: () => void
  /** SIGTERM, or the terminal is gone: leave what is unfinished to others. */
  readonly leave: () => void
  /** Whatever must be put right before the process ends at once. */
  readonly restore: () => void
}

/** Ctrl-C once asks to stop, twice ends at once; SIGTERM and SIGHUP hand over. Gives a function that ends it. */
export function onInterrupt({ ask, leave, restore }: Interrupts): () => void {
  let asked = false
  const interrupted = (): void => {
    if (asked) {
      restore()
      process.exit(EXIT.interrupted)
    }
    asked = true
    ask()
  }
  process.on('SIGINT', interrupted)
  process.once('SIGTERM', leave)
  process.once('SIGHUP', leave)
  return () => {
    process.off('SIGINT', interrupted)
    process.off('SIGTERM', leave)
    process.off('SIGHUP', leave)
  }
}
