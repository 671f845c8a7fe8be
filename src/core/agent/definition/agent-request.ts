import type { Json } from '../../base/json.ts'
import type { Run } from '../../conversation/run.ts'
import type { Grant } from '../../grant/grant.ts'
import type { Content } from '../../graph/content.ts'
import type { CompletedOutcome } from '../../graph/outcome.ts'
import type { StoreReader } from '../../graph/reader.ts'
import type { Id } from '../../graph/rows.ts'
import type { TextLoadOptions } from '../../prompt/file/load-text.ts'
import { Prompt, promptFromSlots, type SlotOptions, slotsOf } from '../../prompt/prompt.ts'
import type { OutputOf, OutputShape } from '../../prompt/shape/shape-schema.ts'
import type { Layers } from '../../prompt/slots/slot.ts'
import type { Tool } from '../../tool/tool.ts'
import { type ChatRecord, recordedInput } from './chat-record.ts'
import type { ExtensionCore } from './extension.ts'
import { SlotInput } from './input.ts'
import type { Repair } from './repair.ts'

export interface RequestStartOptions {
  /** Cancels the run when it aborts. */
  readonly abortSignal?: AbortSignal
  /** Binds this run and everything below it, whatever else they are granted. */
  readonly grant?: Omit<Grant, 'delegate'>
  /** Replaces the agent's own tools, in this process. */
  readonly tools?: { readonly [name: string]: Tool<never, unknown> }
  /** Replaces the agent's own repair: how often the model answers again when an answer does not fit, and how. */
  readonly repair?: Repair
  /** Continues this conversation instead of starting a new one. */
  readonly conversationId?: Id
  /** Creates the conversation of that id where there is none. */
  readonly createConversation?: boolean
  /** Continues the conversation that you know by this text, or starts it: see `run`. */
  readonly conversationKey?: string
  /** The runtime to use. Default: the runtime of the current tool call, else one in memory. */
  readonly runtime?: RequestRuntime
  /** The owner of the conversation: see `run`. */
  readonly owner?: string
  /** The title of a new conversation. */
  readonly title?: string
}

/** A runtime, made with `createRuntime`. */
export interface RequestRuntime {
  readonly store: object
  resume(): Promise<readonly object[]>
}

/** Connects a request to its agent. */
export interface RequestAgent {
  start(asked: PromptInput, options: RequestStartOptions): Run
  generate(asked: PromptInput, options: RequestStartOptions): Promise<CompletedOutcome>
  load(request: AgentRequest, source: PromptSource): Promise<AgentRequest>
  /** The rows of the runtime it would run in. */
  reader(runtime: RequestRuntime | undefined): StoreReader
}

/** A prompt file, or its text. */
export interface PromptSource {
  readonly kind: 'file' | 'text'
  readonly given: string
  readonly options: TextLoadOptions
}

type RequestLoadOptions<Options> = Omit<Options, 'onto' | 'aliases'>

/**
 * A request to an agent, in slots. Every method returns a new request and leaves this one unchanged, so that concurrent
 * requests never interfere. The agent's instructions come before it.
 */
export class AgentRequest<Out = unknown> extends Prompt<Out> {
  private readonly of: RequestAgent
  private readonly extensions: readonly ExtensionCore[]

  constructor(of: RequestAgent, layers?: Layers, extensions: readonly ExtensionCore[] = []) {
    super(layers)
    this.of = of
    this.extensions = extensions
  }

  override output<const S extends OutputShape>(shape: S, options?: SlotOptions): AgentRequest<OutputOf<S>> {
    return super.output(shape, options) as unknown as AgentRequest<OutputOf<S>>
  }

  /** Adds hooks for this request alone: they run before the agent's. They do not outlive this process. */
  use(extension: ExtensionCore): this {
    return new AgentRequest<Out>(this.of, this.layers, [...this.extensions, extension]) as this
  }

  /** Starts it, and returns at once. Throws EmptyPromptError where nothing is asked. */
  start(options: RequestStartOptions = {}): Run<Out> {
    return this.of.start(this.asked(), options) as Run<Out>
  }

  /** Runs it and returns the outcome; throws RunError, with the outcome, unless it completed. */
  generate(options: RequestStartOptions = {}): Promise<CompletedOutcome<Out>> {
    return this.of.generate(this.asked(), options) as Promise<CompletedOutcome<Out>>
  }

  /** Loads a prompt file into the request: YAML, or JSON by its ending. */
  loadPromptFile(path: string, options: RequestLoadOptions<TextLoadOptions> = {}): Promise<this> {
    return this.load({ kind: 'file', given: path, options })
  }

  /** Loads the text of a prompt file into the request. */
  loadPromptText(text: string, options: RequestLoadOptions<TextLoadOptions> = {}): Promise<this> {
    return this.load({ kind: 'text', given: text, options })
  }

  /** For extensions: the same request by another way to its agent. */
  through(way: (of: RequestAgent) => RequestAgent): AgentRequest<Out> {
    return new AgentRequest<Out>(way(this.of), this.layers, this.extensions)
  }

  /** For extensions: the rows of the runtime it would run in. */
  reader(runtime?: RequestRuntime): StoreReader {
    return this.of.reader(runtime)
  }

  private asked(): PromptInput {
    return new PromptInput(this, { extensions: this.extensions })
  }

  protected override withLayers(layers: Layers): this {
    return new AgentRequest<Out>(this.of, layers, this.extensions) as this
  }

  private load(source: PromptSource): Promise<this> {
    return this.of.load(this as AgentRequest, source) as Promise<this>
  }
}

/** A request in slots: an input like any other, and options for one run. */
export class PromptInput extends SlotInput {
  readonly prompt: Prompt
  readonly extensions: readonly ExtensionCore[]
  readonly content: Content

  private readonly chat: ChatRecord | null

  /** Throws EmptyPromptError where nothing is asked. */
  constructor(
    prompt: Prompt,
    {
      extensions = [],
      chat = null,
    }: { readonly extensions?: readonly ExtensionCore[]; readonly chat?: ChatRecord | null } = {},
  ) {
    super(prompt.get('input'))
    this.prompt = prompt
    this.extensions = extensions
    this.chat = chat
    const said = contentOf(prompt)
    this.content = chat === null ? said : (recordedInput(prompt, chat) ?? said)
  }

  get record(): Json {
    const slots = slotsOf(this.prompt)
    return this.chat === null ? { slots } : { slots, chat: this.chat as unknown as Json }
  }

  /** The request as part of a chat. */
  inChat(chat: ChatRecord): PromptInput {
    return new PromptInput(this.prompt, { extensions: this.extensions, chat })
  }
}

/** The text that people read in the conversation: the input; where there is none, the whole request. */
function contentOf(prompt: Prompt): Content {
  const { messages } = prompt.toRequest({ tools: 'text' })
  const input = prompt.get('input')
  if (input === undefined || input === '') return messages.at(-1)?.content ?? ''
  return typeof input === 'string' ? input : JSON.stringify(input)
}

/** Reads a stored prompt; undefined for any other record. */
export function promptIn(record: Json | undefined): Prompt | undefined {
  if (typeof record !== 'object' || record === null || Array.isArray(record)) return undefined
  const { slots } = record
  if (typeof slots !== 'object' || slots === null || Array.isArray(slots)) return undefined
  return promptFromSlots(slots)
}
