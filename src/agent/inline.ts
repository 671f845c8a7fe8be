import type { Json } from '../base/json.ts'

/** An agent whose whole definition is data: any process can make it again from the row of its conversation. */
export interface InlineDefinition {
  readonly definition: Json
  /** By the name that it is asked for by; null: its host's. */
  readonly model: string | null
  /** The agent whose tools or model it takes over: its code is needed too. Empty for none. */
  readonly code: string
}
