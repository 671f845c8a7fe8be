import type { Json } from '../../base/json.ts'
import type { NodeOutput } from '../rows.ts'

/** A value as a task's output: the model reads its JSON. */
export function outputOf(value: { readonly [key: string]: Json }): NodeOutput {
  return { content: JSON.stringify(value), value }
}
