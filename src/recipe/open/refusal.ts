import { errorEnd, type ToolEnd } from '../../tool/result.ts'
import type { Surface } from './spec.ts'

type Code = 'INVALID_PARAMS' | 'INVALID_REQUEST' | 'INTERNAL_ERROR'

/** A call that starts nothing: words for the model, the code for programs. */
export class OpenRefusal extends Error {
  readonly code: Code

  constructor(code: Code, message: string) {
    super(message)
    this.code = code
  }
}

export function invalid(message: string): never {
  throw new OpenRefusal('INVALID_PARAMS', message)
}

/** The same as the end of its node. goose begins its words with `Error: `. */
export function refusedCall({ code, message }: OpenRefusal, surface: Surface): ToolEnd {
  const end = errorEnd(surface === 'delegate' ? `Error: ${message}` : message)
  return { ...end, output: { ...end.output, metadata: { error: { code, message } } } }
}
