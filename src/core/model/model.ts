// The Model port: the request to a language model, and the parts of its streamed answer. `model/ai-sdk` implements it
// for models of the AI SDK, `model/named` finds a model by its name, `testing` has scripted ones, and users write their
// own. `agent/request` makes the requests; only `agent/step/call` calls `stream` (I8).
//
// Stays true:
// - An answer is complete only after a `finish` part. A stream that ends without one was cut, and is tried again.
// - A failure is thrown, never a part. The error itself shows whether another try may help (see `model/retry`).
// - Nothing in a request belongs to one provider, except for its metadata and options, which only that provider reads.

import type { Json } from '../base/json.ts'
import type { JsonSchema } from '../base/schema/schema.ts'
import type { Block, Content, ToolCall, Usage } from '../graph/content.ts'
import type { RequestSettings } from '../prompt/render/to-request.ts'

export type Message =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user'; readonly content: Content }
  | { readonly role: 'assistant'; readonly content: Content; readonly calls: readonly ToolCall[] }
  | {
      readonly role: 'tool'
      readonly callId: string
      readonly name: string
      readonly content: Content
      readonly isError: boolean
    }

export interface ToolSchema {
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonSchema
}

/** Passed to the model as they are. The names follow the AI SDK. */
export interface ModelSettings extends RequestSettings {
  /** How much the model thinks before it answers, if it can be set. */
  readonly reasoning?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh'
  /** False: sets no marks for a prompt cache. Providers that need no marks ignore it. */
  readonly promptCache?: boolean
  /** Settings of one provider, sent as they are: `{ openai: { ... } }`. */
  readonly providerOptions?: { readonly [provider: string]: Json }
}

export interface ModelRequest {
  readonly messages: readonly Message[]
  readonly tools: readonly ToolSchema[]
  readonly settings: ModelSettings
  /** The answer should be JSON of this shape. */
  readonly outputSchema: JsonSchema | null
  /** The agent names from the root to the caller. For scripts, records and logs; providers do not get it. */
  readonly path: readonly string[]
}

export type FinishReason = 'stop' | 'tool-calls' | 'length' | 'content-filter' | 'error' | 'other'

export type Part =
  | { readonly type: 'text-delta'; readonly text: string }
  /** Ends a piece of text: everything since the last block or end. The provider wants this metadata back with it. */
  | { readonly type: 'text-end'; readonly providerMetadata: Json }
  /** Shown live. Reasoning that must be sent back follows as a block of the same text. */
  | { readonly type: 'reasoning-delta'; readonly text: string }
  | { readonly type: 'tool-input-delta'; readonly id: string; readonly name: string; readonly text: string }
  /** `input` is JSON text, or a value the client has already parsed. */
  | {
      readonly type: 'tool-call'
      readonly id: string
      readonly name: string
      readonly input: Json
      readonly providerMetadata?: Json
    }
  | { readonly type: 'block'; readonly block: Block }
  | {
      readonly type: 'finish'
      readonly reason: FinishReason
      readonly usage: Usage
      /** The names that the provider gave its answer and its model, where it says them. Traces tell them. */
      readonly response?: ModelResponse
    }

/** The names that a provider gives an answer. */
export interface ModelResponse {
  /** The id of the answer. */
  readonly id?: string
  /** The model that answered. */
  readonly model?: string
}

/**
 * Reaches a language model. A stream that ends without `finish` was cut. Failures throw; the runtime retries one with
 * `isRetryable: true`, a `statusCode` of 408, 409, 429 or 5xx, or a network error.
 */
export interface Model {
  /** `provider/model`. */
  readonly id: string
  /** False for a model that cannot call tools: `planner()` then asks it which one is needed. Default true. */
  readonly nativeTools?: boolean
  stream(request: ModelRequest, options: { readonly signal: AbortSignal }): AsyncIterable<Part>
  /** The secrets of this model, such as its key, which no recording may keep. Default none. */
  secrets?(): Promise<readonly string[]>
  /** The variable of its key, where a file names it, and where the key goes. Default null. */
  namedKey?(): NamedKey | null
}

/** A key that a file names by its variable. */
export interface NamedKey {
  readonly variable: string
  /** The address of the server that gets it; null for the provider's own. */
  readonly url: string | null
}
