import { createInterface } from 'node:readline'
import type { Id, RunEvent, Runtime } from '../../index.ts'
import { cleanText, oneLine } from '../terminal/clean.ts'
import { note } from '../terminal/output.ts'
import { painter } from '../terminal/paint.ts'
import type { Question } from '../watch/asked.ts'
import { LiveTree } from '../watch/live-tree.ts'
import type { View } from '../watch/view.ts'
import { wordsOf } from '../watch/words.ts'

/** What the agent of a chat says, line by line as it is said, above the tree of what is going on. */
export class ChatView implements View {
  readonly wantsHistory = true
  private readonly tree: LiveTree
  /** Of the node that speaks: what it has said, and the end of it that does not stand on the screen yet. */
  private speaks: { readonly nodeId: Id; text: string; left: string } | undefined

  constructor(runtime: Runtime, env: NodeJS.ProcessEnv) {
    this.tree = new LiveTree(runtime, { paint: painter(process.stdout, env), hint: 'Ctrl-C stops', leaves: 'footer' })
  }

  take(event: RunEvent, runId: Id): void {
    if (event.turnId === runId) this.hear(event)
    this.tree.take(event, runId)
  }

  say(text: string): void {
    this.tree.say(text)
  }

  ask(question: Question | null, shown?: () => void): void {
    this.tree.ask(question, shown)
  }

  close(): void {
    this.tree.close()
  }

  private hear(event: RunEvent): void {
    const { nodeId } = event
    if (event.type === 'reset') this.speaks = undefined
    if (nodeId === null) return
    if (event.type === 'text-delta' && event.cumulative !== true) {
      this.add(nodeId, event.text)
      // Only what is new is looked at: a line may come in a million pieces.
      const fresh = event.text.length - event.text.lastIndexOf('\n') - 1
      if (fresh < event.text.length) this.show(fresh)
    }
    if (event.type === 'message' && event.role === 'agent') {
      const text = wordsOf(event.content)
      if (this.speaks?.nodeId !== nodeId || !text.startsWith(this.speaks.text)) this.speaks = undefined
      this.add(nodeId, text.slice(this.speaks?.text.length ?? 0))
      this.show(0)
      this.speaks = undefined
    }
  }

  private add(nodeId: Id, text: string): void {
    if (this.speaks?.nodeId !== nodeId) this.speaks = { nodeId, text: '', left: '' }
    this.speaks.text += text
    this.speaks.left += text
  }

  /** All that is left but the last so many characters. */
  private show(kept: number): void {
    const { speaks } = this
    if (speaks === undefined || speaks.left.length <= kept) return
    const end = speaks.left.length - kept
    const text = cleanText(speaks.left.slice(0, end))
    this.tree.say(text.endsWith('\n') ? text : `${text}\n`)
    speaks.left = speaks.left.slice(end)
  }
}

/** Lines that come so close together were pasted, also where the terminal does not say so: they are one message. */
const PASTED_MS = 30
/** Asks the terminal to say where a paste begins and ends. */
const MARKS = { on: '\u001b[?2004h', off: '\u001b[?2004l' } as const
/** Before each further line of a message. */
const MORE = '  '

export interface Prompt {
  readonly text: string
  /** What was said before: the arrow up brings it back. */
  readonly history: readonly string[]
}

/**
 * What a person types next; null when they leave: Ctrl-D, or Ctrl-C twice. Pasted lines are one message, which Enter sends: a
 * paste that ends in the middle of a line can be written on.
 */
export function readMessage({ text, history }: Prompt): Promise<string | null> {
  const reader = createInterface({
    input: process.stdin,
    output: process.stdout,
    prompt: text,
    history: history.toReversed(),
    terminal: true,
  })
  const lines: string[] = []
  let soon: ReturnType<typeof setTimeout> | undefined
  let isAsked = false
  let isPasting = false
  const onKey = (_: unknown, key: { readonly name?: string } | undefined): void => {
    if (key?.name === 'paste-start') isPasting = true
    if (key?.name === 'paste-end') isPasting = false
  }
  const show = (prompt: string): void => {
    reader.setPrompt(prompt)
    reader.prompt(true)
  }
  process.stdin.on('keypress', onKey)
  process.stdout.write(MARKS.on)
  return new Promise((resolve) => {
    // What is first said to be the end is it: closing says it once more.
    const end = (message: string | null): void => {
      clearTimeout(soon)
      resolve(message)
      reader.close()
    }
    const sendUnlessWritten = (): void => {
      // The rest of a paste stands in the line: Enter sends all of it.
      if (reader.line === '') end(lines.join('\n').trimEnd())
      else show(MORE)
    }
    reader.on('line', (line) => {
      isAsked = false
      lines.push(line)
      clearTimeout(soon)
      if (isPasting) show(MORE)
      else soon = setTimeout(sendUnlessWritten, PASTED_MS)
    })
    reader.on('SIGINT', () => {
      if (isAsked) return end(null)
      isAsked = true
      isPasting = false
      clearTimeout(soon)
      lines.length = 0
      process.stdout.write('\n(Ctrl-C again leaves.)\n')
      reader.write(null, { ctrl: true, name: 'u' })
      show(text)
    })
    reader.once('close', () => {
      process.stdin.off('keypress', onKey)
      process.stdout.write(MARKS.off)
      if (lines.length === 0) process.stdout.write('\n')
      resolve(lines.length === 0 ? null : lines.join('\n').trimEnd())
    })
    show(text)
  })
}

const ROUNDS = 2
const LINES = 6

/** Shows how a conversation that is gone on with stands: the last rounds, of each message its end. */
export async function recall(runtime: Runtime, conversationId: Id): Promise<void> {
  const talk = await runtime.conversation(conversationId)
  const { transcript } = await talk.transcriptPage({ limitTurns: ROUNDS })
  const name = oneLine(talk.row?.agent.name ?? '?')
  for (const { role, text } of transcript) {
    if (text.trim() !== '') note(`${role === 'user' ? 'you' : name}: ${endOf(text)}`)
  }
}

function endOf(text: string): string {
  const lines = cleanText(text.trim()).split('\n')
  return lines.length <= LINES ? lines.join('\n') : ['…', ...lines.slice(-LINES)].join('\n')
}
