import type { Id, RunEvent, Runtime } from '../../index.ts'
import { cleanText } from '../terminal/clean.ts'
import { painter } from '../terminal/paint.ts'
import { LiveTree } from '../watch/live-tree.ts'
import type { Question } from '../watch/question-lines.ts'
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
