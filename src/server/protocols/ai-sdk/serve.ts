// A chat of `useChat`: the conversation that a principal has with an agent under the page's id.
//
// Owns:      what each request of a page does: say, edit, answer, make anew, resume, stop.
// Called by: the routes of the server, and programs that serve a chat themselves.
// Must stay true:
//   - It reaches rows only through the principal's runtime (I12). The same id of another principal is another conversation.
//   - A repeated request starts nothing twice. A page that leaves stops nothing.
//   - A message of the agent has the id of its run.

import { toUIMessageStream, UI_MESSAGE_ID, type UiMessage, type UiMessageChunk7 } from '../../../doors/ai-sdk.ts'
import { ConflictError, type Id, InputError, NotFoundError, type Run, type ScopedRuntime } from '../../../index.ts'
import { pendingIn } from '../ag-ui/rows.ts'
import type { ChatAnswer, ChatOutput, ChatOutputs, ChatRequest, ChatWords, PageMessage } from './read.ts'

export type ChatStream = ReadableStream<UiMessageChunk7>

/** The agent of a chat, the page's id of the chat, and the version of the AI SDK that the page has. */
export interface ChatAddress {
  readonly agent: string
  readonly chatId: string
  readonly ui: 6 | 7
}

/** One chat of a principal. Holds nothing of it: everything is read from rows. */
export class Chat {
  private readonly runtime: ScopedRuntime
  private readonly place: ChatAddress

  constructor(runtime: ScopedRuntime, place: ChatAddress) {
    this.runtime = runtime
    this.place = place
  }

  /** Does what the page wants, and gives the message that follows: a new one, or the rest of the one that waited. */
  async post({ isAgain, messageId, said, words, outputs }: ChatRequest): Promise<ChatStream> {
    if (isAgain) return this.stream(await this.rerun(messageId))
    const given = said === null ? await this.openOutputs(outputs) : NO_OUTPUTS
    // A result that does not fit is refused before anything is answered.
    const says = given.open.map(({ nodeId, result, isError, seen }) =>
      this.runtime.checkAnswer(nodeId, { result, isError, seen: seen ?? NOTHING_SHOWN }),
    )
    const checked = [...(await Promise.all(says)), ...(await this.checkWords(words))]
    for (const say of checked) await say()
    if (said !== null) return this.stream(await this.say(said, messageId === said.id))
    const after = [...words.list.map(({ id }) => id), ...given.nodeIds]
    if (after.length === 0) throw new InputError('invalid_input', 'The request of the page says nothing new.')
    return this.stream(await this.runtime.attach(words.messageId ?? outputs.messageId ?? ''), after)
  }

  /**
   * The message that is being written, from its first chunk; null where none is. `messageId` names one that the page holds
   * unfinished: it is given though it is over by now.
   */
  async resume(messageId?: string): Promise<ChatStream | null> {
    const [newest] = await this.runs(1)
    if (newest === undefined || (newest.state === 'ended' && newest.runId !== messageId)) return null
    return this.stream(await this.runtime.attach(newest.runId))
  }

  /** Cancels what goes on in the chat, and gives the number of runs. */
  async stop(): Promise<number> {
    this.runtime.require('cancel')
    const open = (await this.runs(MOST_OPEN)).filter(({ state }) => state !== 'ended')
    for (const { runId } of open) await this.runtime.cancel(runId, 'The person stopped it.')
    return open.length
  }

  /** The newest turns as messages, for a page that loads; none for a chat that nobody has begun. */
  async messages(limitTurns: number = PAGE_TURNS): Promise<UiMessage[]> {
    const conversation = await unlessMissing(this.runtime.conversation(await this.id()))
    return conversation === undefined ? [] : conversation.uiMessages({ limitTurns, approvals: this.sight })
  }

  /** The conversation of the chat, by the id that the page's stands for. */
  private id(): Promise<Id> {
    return this.runtime.conversationIdFor(this.place.agent, this.place.chatId)
  }

  /** A principal without the scope sees that the run waits, and is not asked. */
  private get sight(): 'ask' | 'show' {
    return this.runtime.may('approve') ? 'ask' : 'show'
  }

  private stream(run: Run, after: readonly string[] = []): ChatStream {
    const approvals = this.sight === 'ask' ? 'end' : 'show'
    return toUIMessageStream(run, { ui: this.place.ui, approvals, executes: this.runtime.principal.id, after })
  }

  private async runs(limitTurns: number) {
    const tree = await unlessMissing(this.runtime.tree(await this.id(), { limitTurns }))
    return tree?.runs ?? []
  }

  private async say(said: PageMessage, isEdit: boolean): Promise<Run> {
    const known = await this.find(said.id, isEdit ? PAGE_TURNS : 1)
    if (known === undefined) return this.begin(said)
    if (isSame(known.message, said)) return this.runtime.attach(known.runId)
    if (isEdit) return this.edit(known.runId, said)
    throw new ConflictError('conflict', `The message ${said.id} was sent before, with other words.`)
  }

  private async begin({ id, content }: PageMessage): Promise<Run> {
    const { agent, chatId } = this.place
    const run = this.runtime.run(agent, content, {
      conversationKey: chatId,
      key: JSON.stringify(['ai-sdk', agent, chatId, id]),
      attributes: { [UI_MESSAGE_ID]: id },
      whileRunning: (await this.isAsking()) ? 'restart' : 'queue',
    })
    await recorded(run)
    return run
  }

  /** True while the page is asked, and its person says something else instead: to wait for the answer would wait for ever. */
  private async isAsking(): Promise<boolean> {
    const [newest] = await this.runs(1)
    const asks = newest?.waitingOn.filter(({ on }) => on !== 'nodes') ?? []
    if (asks.length === 0 || !asks.every(({ on }) => on === 'approval' || on === 'question')) return false
    const id = await this.id()
    const sight = { principalId: this.runtime.principal.id, approves: this.sight === 'ask' }
    const open = pendingIn(await this.runtime.treeData(id, { nodes: 'open' }), id, sight)
    const nodeIds = new Set(open.flatMap(({ reason, nodeId }) => (reason === 'input_required' ? [] : [nodeId])))
    return asks.every(({ nodeId }) => nodeIds.has(nodeId))
  }

  /**
   * The results that the page gives for calls which it executes. The rows say which calls those are; what the page holds of
   * others came from the server.
   */
  private async openOutputs({ messageId, list }: ChatOutputs): Promise<GivenOutputs> {
    if (messageId === null) return NO_OUTPUTS
    const message = (await this.messages(ASKED_TURNS)).find(({ id }) => id === messageId)
    const asked = message?.parts.flatMap((part) => (part.type === 'data-question' ? [part.data] : [])) ?? []
    const mine = asked.flatMap(({ nodeId, toolCallId, to, status }) => {
      const given = list.find((one) => one.toolCallId === toolCallId)
      return to === 'outside' && given !== undefined ? [{ ...given, nodeId, status }] : []
    })
    return { nodeIds: mine.map(({ nodeId }) => nodeId), open: mine.filter(({ status }) => status === 'open') }
  }

  /** The run of a page's message, among the newest turns. */
  private async find(messageId: string, limitTurns: number): Promise<SentMessage | undefined> {
    const messages = await this.messages(limitTurns)
    const at = messages.findIndex(({ id, role }) => role === 'user' && id === messageId)
    const [message, answer] = at < 0 ? [] : messages.slice(at)
    return message === undefined || answer?.role !== 'assistant' ? undefined : { message, runId: answer.id }
  }

  private async edit(runId: Id, { content }: PageMessage): Promise<Run> {
    const conversation = await this.runtime.conversation(await this.id())
    const { history } = conversation
    const { transcript } = await conversation.transcriptPage({ limitTurns: PAGE_TURNS })
    const line = transcript.find((one) => one.runId === runId && one.role === 'user')
    return history.edit(line?.nodeId ?? '', content)
  }

  /** Makes the last answer anew. A repeated request finds the one that is being made. */
  private async rerun(messageId: string | null): Promise<Run> {
    const conversation = await this.runtime.conversation(await this.id())
    const { history } = conversation
    const [newest] = await this.runs(1)
    if (newest === undefined) throw new NotFoundError('not_found', 'This chat has no answer yet.')
    const wanted = messageId === null ? newest.runId : await this.runOf(messageId)
    if (newest.state !== 'ended' || wanted !== newest.runId) return this.runtime.attach(newest.runId)
    const { transcript } = await conversation.transcriptPage({ limitTurns: 1 })
    const line = transcript.findLast(({ role }) => role === 'agent')
    if (line === undefined) throw new NotFoundError('not_found', `The run ${wanted} has no answer.`)
    return line.state === 'finished' ? history.rerun(line.nodeId) : history.retry(line.nodeId)
  }

  /** The run of a message: of an answer, or of the message that it answers. Undefined where it was made anew. */
  private async runOf(messageId: string): Promise<Id | undefined> {
    const messages = await this.messages()
    const at = messages.findIndex(({ id }) => id === messageId)
    const answer = messages.slice(Math.max(0, at)).find(({ role }) => role === 'assistant')
    const isLast = answer === messages.findLast(({ role }) => role === 'assistant')
    if (at >= 0 && isLast) return answer?.id
    if (at >= 0) throw new ConflictError('conflict', 'Only the last answer of a chat is made anew: edit the message.')
    const { conversationId } = await this.runtime.attach(messageId)
    if (conversationId === (await this.id())) return undefined
    throw new NotFoundError('not_found', `There is no message ${messageId} in this chat.`)
  }

  /** Checks the words of the person. Gives what says them. */
  private async checkWords({ messageId, list }: ChatWords): Promise<(() => Promise<void>)[]> {
    if (messageId === null) return []
    this.runtime.require('approve')
    return Promise.all(list.map((word) => this.checkWord(messageId, word)))
  }

  /** Answers once: the same word again changes nothing, another one is refused. */
  private async checkWord(messageId: string, word: ChatAnswer): Promise<() => Promise<void>> {
    if ((await this.isOpen(messageId, word)) === false) return async () => undefined
    // Somebody may have been faster.
    const unlessDone = async (error: unknown) => {
      if (!(error instanceof ConflictError) || (await this.isOpen(messageId, word))) throw error
    }
    try {
      const say = await this.runtime.checkAnswer(word.id, said(word))
      return () => say().catch(unlessDone)
    } catch (error) {
      await unlessDone(error)
      return async () => undefined
    }
  }

  /** False where the call was answered with the same word. */
  private async isOpen(messageId: string, { id, allow }: ChatAnswer): Promise<boolean> {
    const message = (await this.messages(ASKED_TURNS)).find((one) => one.id === messageId)
    const part = message?.parts.find((one) => 'approval' in one && one.approval?.id === id)
    if (part === undefined || !('approval' in part)) {
      throw new NotFoundError('not_found', `Nothing in this message asks for the approval ${id}.`)
    }
    if (part.state === 'approval-requested') return true
    if (part.approval?.approved === allow) return false
    throw new ConflictError('conflict', `The approval ${id} was answered otherwise, or is over: load the chat again.`)
  }
}

/** No hash: a page that does not send back what it was shown answers nothing. */
const NOTHING_SHOWN = ''

/** A no allows nothing: it may go without what was shown. */
function said({ allow, reason, seen }: ChatAnswer): Parameters<ScopedRuntime['answer']>[1] {
  const why = reason === null ? {} : { reason }
  return !allow && seen === null ? { allow: false, ...why } : { allow, ...why, seen: seen ?? NOTHING_SHOWN }
}

/** Results of calls that the page executes. */
interface GivenOutputs {
  /** The calls, those that were answered before among them. */
  readonly nodeIds: readonly Id[]
  /** Those that wait. */
  readonly open: readonly (ChatOutput & { readonly nodeId: Id })[]
}

const NO_OUTPUTS: GivenOutputs = { nodeIds: [], open: [] }

interface SentMessage {
  readonly message: UiMessage
  readonly runId: Id
}

/** The most turns that are looked at for a message of the page. */
const PAGE_TURNS = 50
/** The most turns that are looked at for a message that asks. */
const ASKED_TURNS = 5
const MOST_OPEN = 100

/** True where the page sent this before: its texts and files are those of the message. */
function isSame({ parts }: UiMessage, { content }: PageMessage): boolean {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content } as const] : content
  const known = parts.map((part) => (part.type === 'text' ? part.text : 'url' in part ? part.url : ''))
  const now = blocks.map((block) => {
    if ('text' in block) return block.text
    return 'data' in block ? `data:${block.mediaType};base64,${block.data}` : ''
  })
  return known.length === now.length && now.every((text, at) => known[at] === text)
}

/** Throws what is wrong with a run that could not be started. */
async function recorded(run: Run): Promise<void> {
  const events = run[Symbol.asyncIterator]()
  await events.next()
  await events.return?.()
}

async function unlessMissing<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found
  } catch (error) {
    if (error instanceof NotFoundError) return undefined
    throw error
  }
}
