import type { AnyAgent } from '../../index.ts'
import { CliError, EXIT } from '../command.ts'

/** A model that there is not is told before anything is recorded. */
export function checkModel({ model }: AnyAgent): void {
  try {
    if (model === null || model.id !== '') return
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new CliError(message, EXIT.usage, { namesHelp: false })
  }
}
