import { type Json, toJson } from '../../core/base/json.ts'
import type { TreeReader } from '../../core/graph/reader.ts'
import type { Id } from '../../core/graph/rows.ts'
import type { ModelRequest } from '../../core/model/model.ts'
import type { PackedRequest } from './recording-file.ts'

/** A request as it is compared: everything a model receives. */
export interface PlainRequest {
  readonly messages: readonly Json[]
  readonly tools: Json
  readonly settings: Json
  readonly outputSchema: Json
}

export interface Base {
  readonly at: string
  readonly request: PlainRequest
}

const REST = ['tools', 'settings', 'outputSchema'] as const
const NOTHING: PlainRequest = { messages: [], tools: [], settings: {}, outputSchema: null }

/**
 * Leaves out what an earlier request already contains, so that a recording grows with new text, not with repetition.
 */
export function packRequest(request: PlainRequest, base: Base | undefined): PackedRequest {
  const known = base?.request ?? NOTHING
  const keep = request.messages.findIndex((message, at) => !isSame(message, known.messages[at]))
  const kept = keep === -1 ? Math.min(request.messages.length, known.messages.length) : keep
  const changed = REST.filter((key) => !isSame(request[key], known[key])).map((key) => [key, request[key]])
  return {
    ...(base === undefined ? {} : { after: base.at, keep: kept }),
    messages: request.messages.slice(base === undefined ? 0 : kept),
    ...Object.fromEntries(changed),
  }
}

export function unpackRequest(packed: PackedRequest, base: PlainRequest = NOTHING): PlainRequest {
  const { keep = 0, messages, tools = base.tools, settings = base.settings } = packed
  const { outputSchema = base.outputSchema } = packed
  return { messages: [...base.messages.slice(0, keep), ...messages], tools, settings, outputSchema }
}

function isSame(a: Json | undefined, b: Json | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

/** Selects the parts of a request that are compared. */
export function plainRequest(request: ModelRequest, clean: (value: Json) => Json): PlainRequest {
  const { messages, tools, settings, outputSchema } = request
  const json = toJson({ messages, tools, settings, outputSchema })
  return clean(json.ok ? json.value : { messages: [json.error] }) as unknown as PlainRequest
}

const ID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g
const TOKEN = /<id:\d+>/g

/** Our ids, which differ in every run, and their tokens in a recording, numbered as they appear. */
export class IdTokens {
  private readonly store: TreeReader
  private readonly tokens: Map<Id, string> = new Map()
  private readonly ids: Map<string, Id> = new Map()
  private readonly recorded: Map<string, Id> = new Map()
  private fresh: { [token: string]: Id } = {}

  constructor(store: TreeReader) {
    this.store = store
  }

  /** Replaces ids by tokens. Ids that the store does not know are not ours and stay. */
  hide(text: string): string {
    return text.replaceAll(ID, (id) => this.tokenOf(id) ?? id)
  }

  tokenOf(id: Id): string | undefined {
    const known = this.tokens.get(id)
    if (known !== undefined || !this.isOurs(id)) return known
    const token = `<id:${this.tokens.size + 1}>`
    this.bind(token, id)
    this.fresh[token] = id
    return token
  }

  /** Replaces tokens by ids. */
  show(text: string): string {
    return text.replaceAll(TOKEN, (token) => this.ids.get(token) ?? this.recorded.get(token) ?? token)
  }

  /** Returns the id of a token; undefined while it is unknown. */
  idOf(token: string): Id | undefined {
    return this.ids.get(token)
  }

  bind(token: string, id: Id): void {
    this.ids.set(token, id)
    this.tokens.set(id, token)
  }

  /** Uses the recorded id of a token about which nothing else is known. */
  recall(token: string, id: Id): void {
    this.recorded.set(token, id)
  }

  /** Returns the tokens that are new since the last call; undefined for none. */
  takeFresh(): { readonly [token: string]: Id } | undefined {
    const { fresh } = this
    if (Object.keys(fresh).length === 0) return undefined
    this.fresh = {}
    return fresh
  }

  private isOurs(id: Id): boolean {
    const { store } = this
    return store.node(id) !== undefined || store.turn(id) !== undefined || store.conversation(id) !== undefined
  }
}
