import type { Extension } from '../agent.ts'
import { checkExtension } from './extension.ts'

/** Defines an extension, with the types of its state and methods inferred. What could never work is refused here. */
export function extension<const Name extends string, Methods extends object = object, State = undefined>(
  definition: Extension<Name, Methods, State>,
): Extension<Name, Methods, State> {
  checkExtension(definition, 'extension()')
  return Object.freeze({ ...definition })
}
