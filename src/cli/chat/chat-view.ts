import { createInterface } from 'node:readline'
import type { Id, RunEvent, Runtime } from '../../index.ts'
import { cleanText, oneLine } from '../terminal/clean.ts'
import { note } from '../terminal/output.ts'
import { painter } from '../terminal/paint.ts'
import { LiveTree } from '../watch/live-tree.ts'
import type { ScreenQuestion } from '../watch/request-text.ts'
import type { RunView } from '../watch/view.ts'
import { contentWords } from '../watch/words.ts'

/** Prints the agent's answer line by line as it arrives, above the tree of running agents. */
export class ChatView implements RunView {
  readonly wantsHistory = true
  private readonly tree: LiveTree
  /** The text of the speaking node so far, and its last part that is not on the screen yet. */
  private speaks: { readonly nodeId: Id; text: string; left: string } | undefined

  constructor(runtime: Runtime, env: NodeJS.ProcessEnv) {
    this.tree = new LiveTree(runtime, { paint: painter(process.stdout, env), hint: 'Ctrl-C stops', leaves: 'footer' })
  }

  take(event: RunEvent, runId: Id): void {
    if (event.runId === runId) this.hear(event)
    this.tree.take(event, runId)
  }

  say(text: string): void {
    this.tree.say(text)
  }

  ask(question: ScreenQuestion | null, shown?: () => void): void {
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
      // Looks only at the new text: one line may arrive in a million pieces.
      const fresh = event.text.length - event.text.lastIndexOf('\n') - 1
      if (fresh < event.text.length) this.show(fresh)
    }
    if (event.type === 'message' && event.role === 'agent') {
      const text = contentWords(event.content)
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

  /** Prints everything not yet shown except the last `kept` characters. */
  private show(kept: number): void {
    const { speaks } = this
    if (speaks === undefined || speaks.left.length <= kept) return
    const end = speaks.left.length - kept
    const text = cleanText(speaks.left.slice(0, end))
    this.tree.say(text.endsWith('\n') ? text : `${text}\n`)
    speaks.left = speaks.left.slice(end)
  }
}

/** Lines that arrive within this time were pasted, even if the terminal does not mark pastes: they form one message. */
const PASTED_MS = 30
/** Asks the terminal to mark where a paste begins and ends. */
const MARKS = { on: '\u001b[?2004h', off: '\u001b[?2004l' } as const
/** Indents each further line of a message. */
const MORE = '  '

/**
 * Reads the next message; null when the person leaves with Ctrl-D or with Ctrl-C twice. Pasted lines form one message
 * that Enter sends, so you can continue a paste that ends in the middle of a line.
 */
export function promptForMessage(
  text: string,
  /** Earlier messages, recalled with the up arrow. */
  history: readonly string[],
): Promise<string | null> {
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
    // Only the first end counts: closing the reader reports another one.
    const end = (message: string | null): void => {
      clearTimeout(soon)
      resolve(message)
      reader.close()
    }
    const sendUnlessWritten = (): void => {
      // If part of a paste is still in the input line, Enter sends all of it together.
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

/** Shows where a continued conversation stands: the end of each message of its last rounds. */
export async function showLastRounds(runtime: Runtime, conversationId: Id): Promise<void> {
  const talk = await runtime.conversation(conversationId)
  const { transcript } = await talk.transcriptPage({ limitTurns: ROUNDS })
  const name = oneLine((await talk.row())?.agent.name ?? '?')
  for (const { role, text } of transcript) {
    if (text.trim() !== '') note(`${role === 'user' ? 'you' : name}: ${endOf(text)}`)
  }
}

function endOf(text: string): string {
  const lines = cleanText(text.trim()).split('\n')
  return lines.length <= LINES ? lines.join('\n') : ['…', ...lines.slice(-LINES)].join('\n')
}
