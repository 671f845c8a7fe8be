// A prompt: slots in two layers, the agent's and the request's, and the ways to render them. Users build one with
// `prompt()` or `agent.request()`; `prompt/file` loads one from a file; `agent/request` and `agent/planner` render one
// for a model. The rules for slots are in `prompt/slots`, those for text, messages and requests in `prompt/render`.
//
// Stays true:
// - A prompt never changes: each method returns another one, so requests that run at the same time cannot interfere.
// - A slot holds plain, frozen data (or a schema as the whole `output`), copied when it is set.
// - Equal slots render equal text, so that providers can cache it; data can never open a block of its own.

import { DefinitionError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import { flag, type OptionRules, readOptions, record } from '../base/options.ts'
import { type MessagesOptions, type PromptMessage, type TextOptions, toMessages, toText } from './render/to-messages.ts'
import { type PromptRequest, type RequestRenderOptions, toRequest } from './render/to-request.ts'
import { jsonPrompt, yamlPrompt } from './render/yaml-text.ts'
import type { OutputOf, OutputShape } from './shape/shape-schema.ts'
import { changeSlot, type LayerName, type MergeMode, NO_LAYERS, viewOf } from './slots/layer.ts'
import { frozen, type Mappings, readMappings } from './slots/placeholder.ts'
import { readSlot } from './slots/read-slot.ts'
import { type Layers, SchemaOutput, type Slot } from './slots/slot.ts'

export interface SlotOptions {
  /** Values for `${name}` in keys and texts. */
  readonly mappings?: Mappings | undefined
  /** True: sets it for every request of the agent, not only for this one. */
  readonly always?: boolean | undefined
}

const SAY: OptionRules<SlotOptions> = { mappings: record, always: flag }

/** A slot, or a key of your own. */
export type SlotKey = Slot | (string & {})

/**
 * The prompt of a model, in two layers: the agent's, which every request shares, and the request's on top. A prompt
 * never changes: every method returns a new one, so that concurrent requests cannot interfere.
 */
export class Prompt<Out = unknown> {
  readonly layers: Layers
  /** Exists only for the compiler: the type of an answer. */
  declare readonly answer?: Out

  constructor(layers: Layers = NO_LAYERS) {
    this.layers = layers
  }

  /** Merges: objects key by key, lists get the items they lack, everything else is replaced. */
  set(slot: SlotKey, value: unknown, options: SlotOptions = {}): this {
    return this.withSlot(slot, value, { ...options, mode: 'set' })
  }

  /** Replaces the slot's value in this layer. */
  replace(slot: SlotKey, value: unknown, options: SlotOptions = {}): this {
    return this.withSlot(slot, value, { ...options, mode: 'replace' })
  }

  /** Adds to the end of the slot's value, as a list. */
  add(slot: SlotKey, value: unknown, options: SlotOptions = {}): this {
    return this.withSlot(slot, value, { ...options, mode: 'add' })
  }

  /**
   * Empties the slot for this request, whatever the agent's layer holds; with `always`, empties it in the agent's
   * layer.
   */
  remove(slot: SlotKey, options: Pick<SlotOptions, 'always'> = {}): this {
    return this.withSlot(slot, null, { ...options, mode: 'replace' })
  }

  system(value: unknown, options?: SlotOptions): this {
    return this.set('system', value, options)
  }

  developer(value: unknown, options?: SlotOptions): this {
    return this.set('developer', value, options)
  }

  /** Adds a rule that the model must keep: to `system`, with a pointer to it in `instruct`. */
  rule(value: unknown, options?: SlotOptions): this {
    return this.system({ rule: value }, options).add('instruct', 'Keep to the rules in {system.rule}.', options)
  }

  /** Sets who the model is: in `system`, with a pointer to it in `instruct`. */
  role(value: unknown, options?: SlotOptions): this {
    return this.system({ your_role: value }, options).add('instruct', 'Answer as {system.your_role}.', options)
  }

  /** Sets whom the model talks to: in `system`, with a pointer to it in `instruct`. */
  userInfo(value: unknown, options?: SlotOptions): this {
    const pointer = 'Take into account who you talk to: {system.user_info}.'
    return this.system({ user_info: value }, options).add('instruct', pointer, options)
  }

  /** Replaces the history by these messages. */
  chatHistory(value: unknown, options?: SlotOptions): this {
    return this.replace('chat_history', value, options)
  }

  addChatHistory(value: unknown, options?: SlotOptions): this {
    return this.add('chat_history', value, options)
  }

  info(value: unknown, options?: SlotOptions): this {
    return this.set('info', value, options)
  }

  tools(value: unknown, options?: SlotOptions): this {
    return this.set('tools', value, options)
  }

  /** Replaces the results by these, by their purpose. */
  actionResults(value: unknown, options?: SlotOptions): this {
    return this.replace('action_results', value, options)
  }

  addActionResults(value: unknown, options?: SlotOptions): this {
    return this.set('action_results', value, options)
  }

  instruct(value: unknown, options?: SlotOptions): this {
    return this.set('instruct', value, options)
  }

  examples(value: unknown, options?: SlotOptions): this {
    return this.set('examples', value, options)
  }

  input(value: unknown, options?: SlotOptions): this {
    return this.set('input', value, options)
  }

  attachment(value: unknown, options?: SlotOptions): this {
    return this.set('attachment', value, options)
  }

  /** Sets the schema of the answer: a schema of zod and the like, or a shape, `{ reply: 'str' }`. */
  output<const S extends OutputShape>(shape: S, options?: SlotOptions): Prompt<OutputOf<S>> {
    return this.set('output', shape, options) as unknown as Prompt<OutputOf<S>>
  }

  outputFormat(format: string, options?: SlotOptions): this {
    return this.set('output_format', format, options)
  }

  /** Sets options of the model call: `model`, `temperature`, and those that its provider knows. */
  options(value: { readonly [option: string]: unknown }, options?: Pick<SlotOptions, 'always'>): this {
    return this.set('options', value, options)
  }

  /** The value that the slot shows, or that one layer holds; undefined where it is empty. Frozen. */
  get(slot: SlotKey, layer?: LayerName): Json | undefined {
    const value = (layer === undefined ? viewOf(this.layers) : this.layers[layer]).get(slot)
    if (value instanceof SchemaOutput) return { $schema: value.checked.jsonSchema as { [key: string]: Json } }
    return value === undefined ? undefined : frozen(value)
  }

  /** Renders the prompt as one text. Throws EmptyPromptError where nothing is asked. */
  toText(options?: TextOptions): string {
    return toText(viewOf(this.layers), options)
  }

  /** Renders the prompt as messages of a chat. Throws EmptyPromptError where nothing is asked. */
  toMessages(options?: MessagesOptions): PromptMessage[] {
    return toMessages(viewOf(this.layers), options)
  }

  /**
   * Renders the prompt as a model request: messages, tools, output schema, settings. Throws EmptyPromptError where
   * nothing is asked.
   */
  toRequest(options?: RequestRenderOptions): PromptRequest<Out> {
    return toRequest<Out>(viewOf(this.layers), options)
  }

  /** Writes a YAML prompt file. The prompt loaded from it renders the same. */
  toYamlPrompt(): string {
    return yamlPrompt(this.layers)
  }

  /** Writes a JSON prompt file. The prompt loaded from it renders the same. */
  toJsonPrompt(): string {
    return jsonPrompt(this.layers)
  }

  /** A prompt of the same class with other layers: for subclasses that hold more than their layers. */
  protected withLayers(layers: Layers): this {
    return new Prompt<Out>(layers) as this
  }

  private withSlot(slot: string, given: unknown, options: SlotOptions & { readonly mode: MergeMode }): this {
    const { mode, ...said } = options
    const { mappings, always = false } = readOptions<SlotOptions>(`prompt.${mode}(slot, value, options)`, said, SAY)
    if (slot === '') throw new DefinitionError('definition', 'prompt: a key needs a name.')
    const value = given === undefined ? null : readSlot(slot, given, readMappings(mappings))
    return this.withLayers(changeSlot(this.layers, { layer: always ? 'agent' : 'request', slot, value, mode }))
  }
}

/** Makes a prompt with these slots for every request: `prompt({ system: 'You are brief.' }).input('Hello')`. */
export function prompt(always: { readonly [slot in SlotKey]?: unknown } = {}): Prompt {
  return Object.entries(always).reduce(
    (made, [slot, value]) => (value === undefined ? made : made.set(slot, value, { always: true })),
    new Prompt(),
  )
}

/** The slots that a prompt shows, as plain data: a library's schema becomes its JSON Schema. */
export function slotsOf(prompt: Prompt): { readonly [slot: string]: Json } {
  const entries = [...viewOf(prompt.layers)].map(([slot, value]): [string, Json] => {
    if (!(value instanceof SchemaOutput)) return [slot, value]
    return [slot, { $schema: value.checked.jsonSchema as { [key: string]: Json } }]
  })
  return Object.fromEntries(entries)
}

/** Makes a prompt from its shown slots. */
export function promptFromSlots(slots: { readonly [slot: string]: Json }): Prompt {
  return Object.entries(slots).reduce((made, [slot, value]) => made.replace(slot, value), new Prompt())
}
