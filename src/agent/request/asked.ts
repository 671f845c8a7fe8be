import type { Json } from '../../base/json.ts'
import type { Content } from '../../graph/content.ts'
import type { Prompt } from '../../prompt/prompt.ts'
import { promptOf, slotsOf } from '../../prompt/slots-of.ts'
import type { ExtensionCore } from '../hooks/extension.ts'
import { AskedInput } from '../input.ts'
import { type ChatRecord, recordedInput } from './chat-record.ts'

/** What an agent is asked in slots: an input like any other, and more that holds for one run. */
export class Asked extends AskedInput {
  readonly prompt: Prompt
  readonly extensions: readonly ExtensionCore[]
  readonly content: Content

  private readonly chat: ChatRecord | null

  /** Throws EmptyPromptError where nothing is asked. */
  constructor(prompt: Prompt, { extensions = [], chat = null }: AskedOptions = {}) {
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

  /** The same as one of a chat. */
  inChat(chat: ChatRecord): Asked {
    return new Asked(this.prompt, { extensions: this.extensions, chat })
  }
}

interface AskedOptions {
  readonly extensions?: readonly ExtensionCore[]
  readonly chat?: ChatRecord | null
}

/** What people read in the conversation: the input; where there is none, all that is asked. */
function contentOf(prompt: Prompt): Content {
  const { messages } = prompt.toRequest({ tools: 'text' })
  const input = prompt.get('input')
  if (input === undefined || input === '') return messages.at(-1)?.content ?? ''
  return typeof input === 'string' ? input : JSON.stringify(input)
}

/** What was kept; undefined where it is none. */
export function promptIn(record: Json | undefined): Prompt | undefined {
  if (typeof record !== 'object' || record === null || Array.isArray(record)) return undefined
  const { slots } = record
  if (typeof slots !== 'object' || slots === null || Array.isArray(slots)) return undefined
  return promptOf(slots)
}
