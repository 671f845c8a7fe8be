import { DefinitionError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import type { ToolContext } from './tool.ts'

/** One attribute of a request, by its name, with the type of its value. */
export interface Attribute<Value extends Json> {
  readonly name: string
  /** For `run(agent, input, { attributes })`; several are spread into one object. */
  of(value: Value): { readonly [name: string]: Value }
  /** As the run was started with it; undefined when it was not. */
  in(context: Pick<ToolContext, 'attributes'>): Value | undefined
}

/** Names an attribute once, so that who sets it and who reads it agree on its type: `attribute<{ id: string }>('tenant')`. */
export function attribute<Value extends Json>(name: string): Attribute<Value> {
  if (typeof name !== 'string' || name === '') {
    throw new DefinitionError('definition', "attribute(): it needs a name, such as attribute<string>('tenant').")
  }
  return Object.freeze({
    name,
    of: (value: Value) => ({ [name]: value }),
    in: ({ attributes }: Pick<ToolContext, 'attributes'>) =>
      Object.hasOwn(attributes, name) ? (attributes[name] as Value) : undefined,
  })
}
